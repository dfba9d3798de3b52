import type { CatalogueEvent, EventOf, FileUploadedV1, fileDeletedV1, fileUploadedV1 } from '@penstock/contract-events';
import { accept, refuse, type AggregateRef, type Decider, type Decision } from '@penstock/kernel';

/** A file as a fold of its events. The bytes lie in the object store under `objectKey`. */
export interface FileState extends FileUploadedV1 {
  readonly createdAt: string | null;
  readonly isDeleted: boolean;
}

export type FileEvent = (EventOf<typeof fileUploadedV1> | EventOf<typeof fileDeletedV1>) & { readonly time?: string };

export type FileCommand = { readonly nowMs: number } & (
  | { readonly kind: 'register'; readonly data: FileUploadedV1 }
  | { readonly kind: 'delete'; readonly fileId: string; readonly organisationId: string; readonly reason: 'owner' | 'expired' }
);

export function fileRef(fileId: string): AggregateRef {
  return { context: 'batch', aggregate: 'file', id: fileId };
}

export function isFileEvent<Event extends CatalogueEvent>(event: Event): event is Event & FileEvent {
  return event.type === 'file.uploaded.v1' || event.type === 'file.deleted.v1';
}

export function evolveFile(state: FileState | null, event: FileEvent): FileState | null {
  if (event.type === 'file.uploaded.v1') return state ?? { ...event.data, createdAt: event.time ?? null, isDeleted: false };
  return state === null ? null : { ...state, isDeleted: true };
}

/** A file is registered once, with the bytes it has for good, and may be deleted once. */
export const fileDecider: Decider<FileState | null, FileCommand, FileEvent> = {
  initialState: null,
  evolve: evolveFile,
  decide(command, state): Decision<FileEvent> {
    const time = new Date(command.nowMs).toISOString();
    if (command.kind === 'register') {
      if (state === null) return accept({ type: 'file.uploaded.v1', data: command.data, time });
      if (!state.isDeleted && state.digest === command.data.digest && state.organisationId === command.data.organisationId) return accept();
      return refuse({ code: 'already_exists', message: 'A file with this id exists with other contents; upload under a new id.' });
    }
    if (state === null || state.isDeleted || state.organisationId !== command.organisationId) return refuse(fileNotFound(command.fileId));
    return accept({ type: 'file.deleted.v1', data: { fileId: command.fileId, reason: command.reason }, time });
  },
};

export function fileNotFound(fileId: string): { readonly code: string; readonly message: string; readonly param: string } {
  return { code: 'file_not_found', message: `No such File object: ${fileId}`, param: 'id' };
}

import type { deleteFile, listFiles, registerFile } from '@penstock/contract-commands';
import { fileDecider, fileNotFound, fileRef, isUnfinished, toFileObject, type BatchState, type FileState } from '@penstock/domain-batching';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { handleCommand, type Causation, type LiveProjection } from '@penstock/kernel';
import type { z } from 'zod';
import type { BatchPorts } from './batch-ports.js';
import { pageOf } from './page-of.js';
import { loadState } from './load-state.js';
import { asked } from './metadata-of.js';

/** Files: what the commands on them do. */
export class FileDesk {
  constructor(private readonly ports: BatchPorts, private readonly live: LiveProjection<BatchState>) {}

  async register(data: z.output<typeof registerFile.request>, causation: Causation): Promise<HandlerOutcome<z.input<typeof registerFile.reply>>> {
    const { ports } = this;
    const outcome = await handleCommand(ports.log, fileDecider, fileRef(data.fileId), { kind: 'register', nowMs: ports.clock.now(), data }, asked(ports, causation));
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    return outcome.state === null ? refused(fileNotFound(data.fileId)) : ok(toFileObject(outcome.state));
  }

  async get(organisationId: string, fileId: string): Promise<HandlerOutcome<{ file: ReturnType<typeof toFileObject>; objectKey: string }>> {
    const file = await this.load(organisationId, fileId);
    return file === undefined ? refused(fileNotFound(fileId)) : ok({ file: toFileObject(file), objectKey: file.objectKey });
  }

  async list(query: z.output<typeof listFiles.request>): Promise<HandlerOutcome<z.input<typeof listFiles.reply>>> {
    if (this.ports.queries !== undefined) {
      try {
        const { files, hasMore } = await this.ports.queries.files(query);
        return ok({ files: [...files], hasMore });
      } catch (error) {
        this.ports.logger.warn({ err: error }, 'the database does not answer; files are told from memory');
      }
    }
    const files = [...this.live.state().files.values()].filter((file) => file.organisationId === query.organisationId && (query.purpose === undefined || file.purpose === query.purpose));
    const { page, hasMore } = pageOf(query.order === 'asc' ? files : files.reverse(), (file) => file.fileId, query);
    return ok({ files: page.map(toFileObject), hasMore });
  }

  async delete(organisationId: string, fileId: string, causation: Causation): Promise<HandlerOutcome<z.input<typeof deleteFile.reply>>> {
    const { ports } = this;
    const file = await this.load(organisationId, fileId);
    if (file === undefined) return refused(fileNotFound(fileId));
    const user = [...this.live.state().jobs.values()].find((job) => job.inputFileId === fileId && isUnfinished(job));
    if (user !== undefined) return refused({ code: 'conflict', message: `The file is the input of batch ${user.batchId}, which is not at its end; cancel the batch or wait for it.`, param: 'id' });
    const command = { kind: 'delete', nowMs: ports.clock.now(), fileId, organisationId, reason: 'owner' } as const;
    const outcome = await handleCommand(ports.log, fileDecider, fileRef(fileId), command, asked(ports, causation));
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    // The file is gone with the event; bytes that cannot be removed now take room and are out of reach.
    await ports.objects.delete(file.objectKey).catch((error: unknown) => ports.logger.warn({ err: error, fileId }, 'the bytes of a deleted file are left over'));
    return ok({ fileId });
  }

  /** The file as the log has it; undefined for one that was deleted or belongs to another organisation. */
  async load(organisationId: string, fileId: string): Promise<FileState | undefined> {
    const file = await loadState(this.ports.log, fileDecider, fileRef(fileId));
    return file === null || file.isDeleted || file.organisationId !== organisationId ? undefined : file;
  }
}

import { id } from '@penstock/contract-events';
import type { ObjectInfo, ObjectStore } from '@penstock/domain-batching';
import type { Clock } from '@penstock/kernel';
import { z } from 'zod';

/** As OpenAI's: one that is not completed within an hour is gone. */
export const UPLOAD_TTL_MS = 3_600_000;
/** Uploads of one organisation within {@link UPLOAD_TTL_MS}. */
export const UPLOADS_MAX = 1_000;
/** Objects that one sweep looks at under each prefix; the next one goes on from there. */
const SWEEP_OBJECTS_MAX = 1_000;
/** Whoever completes an upload in its last minute may still be at it. */
const SWEEP_AFTER_MS = 2 * UPLOAD_TTL_MS;
const [HEADS, CLAIMS, PARTS] = ['upload-heads/', 'upload-claims/', 'upload-parts/'];

const uploadHead = z.object({ uploadId: id, projectId: id, filename: z.string(), purpose: z.literal('batch'), bytes: z.int(), createdAtMs: z.number(), fileSeconds: z.int() });
export type UploadHead = z.infer<typeof uploadHead>;

/** How an upload ended; of several who try to end it, one does. */
const uploadClaim = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('cancelled') }),
  z.object({ kind: z.literal('completed'), partIds: z.array(id), fileId: id, objectKey: z.string(), digest: z.string(), expiresAt: z.string() }),
]);
export type UploadClaim = z.infer<typeof uploadClaim>;

/** Uploads that are under way, in the object store under their organisation: a head, parts, and how it ended. */
export class UploadStore {
  private readonly sweepCursors = new Map<string, string | undefined>();

  constructor(private readonly ports: { readonly objects: ObjectStore; readonly clock: Clock }) {}

  async countOf(organisationId: string): Promise<number> {
    const { objects } = await this.ports.objects.list(`${HEADS}${organisationId}/`, { limit: UPLOADS_MAX });
    const oldestMs = this.ports.clock.now() - UPLOAD_TTL_MS;
    return objects.filter(({ modifiedMs }) => modifiedMs > oldestMs).length;
  }

  async create(organisationId: string, head: UploadHead): Promise<void> {
    await this.ports.objects.put(`${HEADS}${organisationId}/${head.uploadId}`, Buffer.from(JSON.stringify(head)));
  }

  /** Undefined when there is none, or none of this organisation. */
  async head(organisationId: string, uploadId: string): Promise<UploadHead | undefined> {
    return this.read(`${HEADS}${organisationId}/${uploadId}`, uploadHead);
  }

  async claimOf(organisationId: string, uploadId: string): Promise<UploadClaim | undefined> {
    return this.read(`${CLAIMS}${organisationId}/${uploadId}`, uploadClaim);
  }

  /** Ends an upload; false when somebody ended it before. */
  async claim(organisationId: string, uploadId: string, claim: UploadClaim): Promise<boolean> {
    const { kind } = await this.ports.objects.put(`${CLAIMS}${organisationId}/${uploadId}`, Buffer.from(JSON.stringify(claim)), { ifAbsent: true });
    return kind === 'stored';
  }

  partKey(organisationId: string, uploadId: string, partId: string): string {
    return `${PARTS}${organisationId}/${uploadId}/${partId}`;
  }

  /** Its parts by their id. */
  async parts(organisationId: string, uploadId: string): Promise<ReadonlyMap<string, ObjectInfo>> {
    const prefix = `${PARTS}${organisationId}/${uploadId}/`;
    const parts = new Map<string, ObjectInfo>();
    for (let cursor: string | undefined; ;) {
      const page = await this.ports.objects.list(prefix, { cursor });
      for (const info of page.objects) parts.set(info.key.slice(prefix.length), info);
      if (page.next === undefined) return parts;
      cursor = page.next;
    }
  }

  async deleteParts(organisationId: string, uploadId: string): Promise<void> {
    for (const { key } of (await this.parts(organisationId, uploadId)).values()) await this.ports.objects.delete(key);
  }

  /** Removes some of what is too old. */
  async sweep(): Promise<void> {
    const dueMs = this.ports.clock.now() - SWEEP_AFTER_MS;
    for (const prefix of [PARTS, HEADS, CLAIMS]) {
      const page = await this.ports.objects.list(prefix, { limit: SWEEP_OBJECTS_MAX, cursor: this.sweepCursors.get(prefix) });
      this.sweepCursors.set(prefix, page.next);
      for (const { key, modifiedMs } of page.objects) if (modifiedMs < dueMs) await this.ports.objects.delete(key);
    }
  }

  private async read<Schema extends z.ZodType>(key: string, schema: Schema): Promise<z.output<Schema> | undefined> {
    const reading = await this.ports.objects.get(key);
    if (reading === undefined) return undefined;
    const pieces: Uint8Array[] = [];
    for await (const piece of reading.body) pieces.push(piece);
    return schema.parse(JSON.parse(Buffer.concat(pieces).toString('utf8')));
  }
}

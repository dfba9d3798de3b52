import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { registerFile, type FileObject } from '@penstock/contract-commands';
import { UPLOAD_PARTS_MAX, type completeUploadRequest, type CreateUploadRequest, type UploadObject } from '@penstock/contract-http';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import { FILE_SECONDS_DEFAULT, requireBatchPurpose } from '../api/files-routes.js';
import { receiveUpload } from '../api/upload.js';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';
import { joinParts } from './join-parts.js';
import { UPLOAD_TTL_MS, UPLOADS_MAX, UploadStore, type UploadClaim, type UploadHead } from './upload-store.js';

type CompleteRequest = z.output<typeof completeUploadRequest>;
type Completion = Extract<UploadClaim, { kind: 'completed' }>;

/** One part, as in OpenAI's API. In bytes. */
const PART_BYTES_MAX = 64 * 1_024 * 1_024;
/** Parts that are sent again take room; together they may come to so many times the file. */
const SENT_TIMES_MAX = 2;
const SWEEP_INTERVAL_MS = 600_000;

/** OpenAI's uploads: a file in parts, which may come at once and through several gateways, and become one file when they are complete. */
@Injectable()
export class UploadRoutes implements RouteGroup, OnApplicationBootstrap, OnApplicationShutdown {
  readonly handlers = [
    onRoute<unknown, CreateUploadRequest>('POST /v1/uploads', (call) => this.create(call)),
    onRoute('POST /v1/uploads/{upload_id}/parts', (call) => this.addPart(call)),
    onRoute<unknown, CompleteRequest>('POST /v1/uploads/{upload_id}/complete', (call) => this.complete(call)),
    onRoute('POST /v1/uploads/{upload_id}/cancel', (call) => this.cancel(call)),
  ];
  private readonly store: UploadStore;
  private stopSweeping: () => void = () => undefined;

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts) {
    this.store = new UploadStore(ports);
  }

  onApplicationBootstrap(): void {
    // A store that is away now is swept the next time.
    this.stopSweeping = this.ports.timers.every(SWEEP_INTERVAL_MS, () => this.store.sweep().catch(() => undefined));
  }

  onApplicationShutdown(): void {
    this.stopSweeping();
  }

  private async create({ principal, body }: RouteCall<unknown, CreateUploadRequest>): Promise<UploadObject> {
    const { filename, purpose, bytes, expires_after: expiresAfter } = body;
    requireBatchPurpose(purpose, filename);
    if ((await this.store.countOf(principal.organisationId)) >= UPLOADS_MAX) {
      throw new RequestFault({ code: 'rate_limit_exceeded', message: `Your organisation began ${UPLOADS_MAX} uploads within an hour. Begin this one later.`, retryAfterMs: 60_000, limit: { name: 'uploads_per_hour', scope: 'your organisation', limit: UPLOADS_MAX, used: UPLOADS_MAX } });
    }
    const head: UploadHead = { uploadId: this.ports.ids.next('upload'), projectId: principal.projectId, filename: nameOf(filename), purpose, bytes, createdAtMs: this.ports.clock.now(), fileSeconds: expiresAfter?.seconds ?? FILE_SECONDS_DEFAULT };
    await this.store.create(principal.organisationId, head);
    return this.objectOf(head, 'pending', null);
  }

  private async addPart(call: RouteCall): Promise<unknown> {
    const { principal: { organisationId } } = call;
    const { uploadId, bytes } = await this.open(call);
    const parts = await this.store.parts(organisationId, uploadId);
    const sent = [...parts.values()].reduce((sum, part) => sum + part.bytes, 0);
    if (parts.size >= UPLOAD_PARTS_MAX) throw new RequestFault({ code: 'invalid_value', message: `An upload has at most ${UPLOAD_PARTS_MAX} parts. Send larger ones.`, param: 'data', limit: { name: 'upload_parts', scope: `upload ${uploadId}`, limit: UPLOAD_PARTS_MAX, used: parts.size } });
    const partId = this.ports.ids.next('part');
    const key = this.store.partKey(organisationId, uploadId, partId);
    const room = Math.min(PART_BYTES_MAX, SENT_TIMES_MAX * bytes - sent);
    try {
      await receiveUpload(call.request, this.ports.objects, key, { field: 'data', bytesMax: Math.max(0, room) });
    } catch (error) {
      await this.ports.objects.delete(key).catch(() => undefined);
      throw error;
    }
    // One that was ended meanwhile takes no more.
    await this.open(call);
    return { id: partId, object: 'upload.part', created_at: this.seconds(), upload_id: uploadId };
  }

  private async complete(call: RouteCall<unknown, CompleteRequest>): Promise<UploadObject> {
    const { principal: { organisationId }, body: { part_ids: partIds, md5 } } = call;
    const head = await this.find(call);
    const ended = await this.store.claimOf(organisationId, head.uploadId);
    const completion = ended ?? (await this.join(call, head, partIds, md5 ?? undefined));
    if (completion.kind !== 'completed' || completion.partIds.join() !== partIds.join()) throw notOpen(completion.kind, 'part_ids');
    // The same again, by a client that did not hear the answer, gives the same file.
    const file = await this.register(call, head, completion);
    await this.store.deleteParts(organisationId, head.uploadId).catch((error: unknown) => this.ports.logger.warn({ err: error, uploadId: head.uploadId }, 'parts of a complete upload are left for the sweep'));
    return this.objectOf(head, 'completed', file);
  }

  /** Joins the parts and ends the upload by that, unless somebody ended it first. */
  private async join(call: RouteCall, head: UploadHead, partIds: readonly string[], md5: string | undefined): Promise<UploadClaim> {
    const { principal: { organisationId } } = call;
    const { uploadId } = await this.open(call);
    const parts = await this.store.parts(organisationId, uploadId);
    const keys = partIds.map((partId, index) => {
      const part = parts.get(partId);
      if (part === undefined || partIds.indexOf(partId) !== index) throw new RequestFault({ code: 'invalid_value', message: `'part_ids[${index}]' is ${part === undefined ? 'no part of this upload' : 'named twice'}.`, param: `part_ids[${index}]` });
      return part;
    });
    const total = keys.reduce((sum, part) => sum + part.bytes, 0);
    if (total !== head.bytes) throw new RequestFault({ code: 'invalid_value', message: `The parts have ${total} bytes together, and the upload was begun for ${head.bytes}. Add what is missing, or begin another upload.`, param: 'part_ids' });
    const fileId = `file_${uploadId.replace(/^upload_/, '')}`;
    const objectKey = `files/${organisationId}/${fileId}-${createHash('sha256').update(partIds.join()).digest('hex').slice(0, 16)}`;
    const joined = await joinParts(this.ports.objects, keys.map(({ key }) => key), objectKey);
    // Whoever completed or cancelled it meanwhile took the parts away.
    if (joined === undefined) return (await this.store.claimOf(organisationId, uploadId)) ?? { kind: 'cancelled' };
    if (md5 !== undefined && md5.toLowerCase() !== joined.md5) {
      await this.ports.objects.delete(objectKey);
      throw new RequestFault({ code: 'invalid_value', message: `The parts have the MD5 ${joined.md5} together. Check their order, or send them again.`, param: 'md5' });
    }
    const claim: Completion = { kind: 'completed', partIds: [...partIds], fileId, objectKey, digest: joined.digest, expiresAt: new Date(this.ports.clock.now() + head.fileSeconds * 1_000).toISOString() };
    if (await this.store.claim(organisationId, uploadId, claim)) return claim;
    const winner = (await this.store.claimOf(organisationId, uploadId)) ?? { kind: 'cancelled' };
    if (winner.kind !== 'completed' || winner.objectKey !== objectKey) await this.ports.objects.delete(objectKey);
    return winner;
  }

  private register(call: RouteCall, { projectId, filename, purpose, bytes }: UploadHead, { fileId, objectKey, digest, expiresAt }: Completion): Promise<FileObject> {
    return askService(this.ports, registerFile, { fileId, organisationId: call.principal.organisationId, projectId, filename, purpose, bytes, digest, objectKey, expiresAt }, call);
  }

  private async cancel(call: RouteCall): Promise<UploadObject> {
    const { principal: { organisationId } } = call;
    const head = await this.find(call);
    const isEnded = !(await this.store.claim(organisationId, head.uploadId, { kind: 'cancelled' }));
    const claim = isEnded ? await this.store.claimOf(organisationId, head.uploadId) : undefined;
    if (claim?.kind === 'completed') throw notOpen('completed', 'upload_id');
    await this.store.deleteParts(organisationId, head.uploadId).catch((error: unknown) => this.ports.logger.warn({ err: error, uploadId: head.uploadId }, 'parts of a cancelled upload are left for the sweep'));
    return this.objectOf(head, 'cancelled', null);
  }

  /** The upload that a route names, of the caller's organisation. */
  private async find({ principal, params }: RouteCall): Promise<UploadHead> {
    const uploadId = params['upload_id'] ?? '';
    const head = isId(uploadId) ? await this.store.head(principal.organisationId, uploadId) : undefined;
    if (head === undefined) throw new RequestFault({ code: 'upload_not_found', message: `No such Upload object: ${uploadId.slice(0, 60)}`, param: 'upload_id' });
    return head;
  }

  /** One that still takes parts. */
  private async open(call: RouteCall): Promise<UploadHead> {
    const head = await this.find(call);
    const claim = await this.store.claimOf(call.principal.organisationId, head.uploadId);
    if (claim !== undefined) throw notOpen(claim.kind, 'upload_id');
    if (head.createdAtMs + UPLOAD_TTL_MS <= this.ports.clock.now()) throw notOpen('expired', 'upload_id');
    return head;
  }

  private objectOf({ uploadId, bytes, createdAtMs, filename, purpose }: UploadHead, status: UploadObject['status'], file: FileObject | null): UploadObject {
    return { id: uploadId, object: 'upload', bytes, created_at: Math.floor(createdAtMs / 1_000), expires_at: Math.floor((createdAtMs + UPLOAD_TTL_MS) / 1_000), filename, purpose, status, file };
  }

  private seconds(): number {
    return Math.floor(this.ports.clock.now() / 1_000);
  }
}

function notOpen(state: 'completed' | 'cancelled' | 'expired', param: string): RequestFault {
  return new RequestFault({ code: 'invalid_value', message: `The upload is ${state}, so it cannot be changed any more. Begin another one.`, param });
}

/** The last part of whatever path a client sends. */
function nameOf(filename: string): string {
  return (filename.split(/[/\\]/).at(-1) ?? '').replace(/[\u0000-\u001f\u007f]/g, '');
}

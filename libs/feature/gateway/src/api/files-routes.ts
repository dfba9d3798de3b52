import { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { deleteFile, getFile, listFiles, registerFile } from '@penstock/contract-commands';
import type { fileListQuery } from '@penstock/contract-http';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';
import { receiveUpload } from './upload.js';

type ListQuery = z.output<typeof fileListQuery>;

/** A file is kept for so long when nothing else is said, and at most. In seconds. */
export const FILE_SECONDS_DEFAULT = 30 * 86_400;
const EXPIRES_AFTER_SECONDS_MIN = 3_600;

/** OpenAI's file routes. Bytes go to the object store, facts to the batch service. */
@Injectable()
export class FilesRoutes implements RouteGroup {
  readonly handlers = [
    onRoute('POST /v1/files', (call) => this.upload(call)),
    onRoute<ListQuery>('GET /v1/files', (call) => this.list(call)),
    onRoute('GET /v1/files/{file_id}', async (call) => (await this.find(call)).file),
    onRoute('DELETE /v1/files/{file_id}', (call) => this.delete(call)),
    onRoute('GET /v1/files/{file_id}/content', (call) => this.content(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts) {}

  private async upload(call: RouteCall): Promise<unknown> {
    const { organisationId, projectId } = call.principal;
    const fileId = this.ports.ids.next('file');
    const objectKey = `files/${organisationId}/${fileId}`;
    try {
      const { filename, bytes, digest, fields } = await receiveUpload(call.request, this.ports.objects, objectKey);
      requireBatchPurpose(fields.get('purpose'), filename);
      return await askService(this.ports, registerFile, { fileId, organisationId, projectId, filename, purpose: 'batch', bytes, digest, objectKey, expiresAt: this.expiryOf(fields) }, call);
    } catch (error) {
      // What no file refers to is only in the way; a failure to remove it must not hide the reason.
      await this.ports.objects.delete(objectKey).catch(() => undefined);
      throw error;
    }
  }

  private async list(call: RouteCall<ListQuery>): Promise<unknown> {
    const { purpose, after, order, limit } = call.query;
    const { files, hasMore } = await askService(this.ports, listFiles, { organisationId: call.principal.organisationId, order, limit, ...(purpose === undefined ? {} : { purpose }), ...(after === undefined ? {} : { after }) }, call);
    return { object: 'list', data: files, first_id: files[0]?.id ?? null, last_id: files.at(-1)?.id ?? null, has_more: hasMore };
  }

  private async delete(call: RouteCall): Promise<unknown> {
    const { fileId } = await askService(this.ports, deleteFile, { organisationId: call.principal.organisationId, fileId: fileIdOf(call) }, call);
    return { id: fileId, object: 'file', deleted: true };
  }

  private async content(call: RouteCall): Promise<unknown> {
    const { file, objectKey } = await this.find(call);
    const reading = await this.ports.objects.get(objectKey);
    if (reading === undefined) throw fileNotFound(file.id);
    call.reply.headers({ 'content-type': 'application/octet-stream', 'content-length': String(reading.bytes), 'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}` });
    await call.reply.send(Readable.from(reading.body, { objectMode: false }));
    return ANSWERED;
  }

  private find(call: RouteCall) {
    return askService(this.ports, getFile, { organisationId: call.principal.organisationId, fileId: fileIdOf(call) }, call);
  }

  private expiryOf(fields: ReadonlyMap<string, string>): string | null {
    const [anchor, text] = [fields.get('expires_after[anchor]'), fields.get('expires_after[seconds]')];
    if (anchor !== undefined && anchor !== 'created_at') throw new RequestFault({ code: 'invalid_value', message: `Invalid value for 'expires_after[anchor]': '${anchor.slice(0, 60)}'. Supported values are: 'created_at'.`, param: 'expires_after[anchor]' });
    if (anchor !== undefined && text === undefined) throw new RequestFault({ code: 'missing_required_parameter', message: `Missing required parameter: 'expires_after[seconds]'.`, param: 'expires_after[seconds]' });
    const seconds = text === undefined ? FILE_SECONDS_DEFAULT : Number(text);
    if (!Number.isInteger(seconds) || seconds < EXPIRES_AFTER_SECONDS_MIN || seconds > FILE_SECONDS_DEFAULT) {
      throw new RequestFault({ code: 'invalid_value', message: `'expires_after[seconds]' must be a whole number from ${EXPIRES_AFTER_SECONDS_MIN} to ${FILE_SECONDS_DEFAULT}.`, param: 'expires_after[seconds]' });
    }
    return new Date(this.ports.clock.now() + seconds * 1_000).toISOString();
  }
}

/** Files are for batches, so far. */
export function requireBatchPurpose(purpose: string | undefined, filename: string): void {
  if (purpose === undefined) throw new RequestFault({ code: 'missing_required_parameter', message: `Missing required parameter: 'purpose'.`, param: 'purpose' });
  if (purpose !== 'batch') throw new RequestFault({ code: 'invalid_value', message: `Invalid value for 'purpose': '${purpose.slice(0, 60)}'. Supported values are: 'batch'.`, param: 'purpose' });
  if (!/\.jsonl$/i.test(filename)) throw new RequestFault({ code: 'invalid_file', message: 'Invalid file format for Batch API. Must be .jsonl', param: 'file' });
}

function fileIdOf({ params }: RouteCall): string {
  const id = params['file_id'] ?? '';
  if (!isId(id)) throw fileNotFound(id.slice(0, 60));
  return id;
}

function fileNotFound(id: string): RequestFault {
  return new RequestFault({ code: 'file_not_found', message: `No such File object: ${id}`, param: 'id' });
}

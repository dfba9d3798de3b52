import { Inject, Injectable } from '@nestjs/common';
import { cancelBatch, createBatch, getBatch, listBatches } from '@penstock/contract-commands';
import { isId } from '@penstock/kernel';
import type { batchListQuery, createBatchRequest } from '@penstock/contract-http';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';

type ListQuery = z.output<typeof batchListQuery>;
type CreateBody = z.output<typeof createBatchRequest>;

/** A batch in a path is what OpenAI's API calls `id` in its errors. */
const NAMED = { params: { batch_id: 'id' } } as const;

/** OpenAI's batch routes; the batch service does the work. Another organisation's batch is answered like one that never was. */
@Injectable()
export class BatchesRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, CreateBody>('POST /v1/batches', (call) => this.create(call)),
    onRoute<ListQuery>('GET /v1/batches', (call) => this.list(call)),
    onRoute('GET /v1/batches/{batch_id}', (call) => askService(this.ports, getBatch, { organisationId: call.principal.organisationId, batchId: batchIdOf(call) }, call, NAMED)),
    onRoute('POST /v1/batches/{batch_id}/cancel', (call) => askService(this.ports, cancelBatch, { organisationId: call.principal.organisationId, batchId: batchIdOf(call) }, call, NAMED)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts) {}

  private create(call: RouteCall<unknown, CreateBody>): Promise<unknown> {
    const { body, principal } = call;
    if (!isId(body.input_file_id)) throw new RequestFault({ code: 'file_not_found', message: `No such File object: ${body.input_file_id}`, param: 'input_file_id' });
    const { organisationId, projectId, keyId } = principal;
    return askService(this.ports, createBatch, { organisationId, projectId, keyId, inputFileId: body.input_file_id, endpoint: body.endpoint, completionWindow: body.completion_window, metadata: body.metadata ?? null, outputExpiresAfterSeconds: body.output_expires_after?.seconds ?? null }, call, {
      params: { inputFileId: 'input_file_id', completionWindow: 'completion_window' },
    });
  }

  private async list(call: RouteCall<ListQuery>): Promise<unknown> {
    const { after, limit } = call.query;
    const { batches, hasMore } = await askService(this.ports, listBatches, { organisationId: call.principal.organisationId, limit, ...(after === undefined ? {} : { after }) }, call);
    return { object: 'list', data: batches, first_id: batches[0]?.id ?? null, last_id: batches.at(-1)?.id ?? null, has_more: hasMore };
  }
}

function batchIdOf({ params }: RouteCall): string {
  const id = params['batch_id'] ?? '';
  if (!isId(id)) throw new RequestFault({ code: 'batch_not_found', message: `No batch found with id '${id.slice(0, 60)}'.`, param: 'id' });
  return id;
}

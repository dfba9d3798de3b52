import { Inject, Injectable } from '@nestjs/common';
import { embeddingRequest, type EmbeddingRequest } from '@penstock/contract-http';
import { estimatePromptTokens, faultOfIssues, promptUsage, readEmbeddings, toEngineEmbedding, withContextParam, type JsonDocument } from '@penstock/domain-serving';
import { readDocument } from '../http/read-body.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type DirectCall, type RouteGroup } from '../http/route-call.js';
import type { EngineSession } from './engine-session.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { WholeOperation } from './whole-operation.js';

/** `POST /v1/embeddings`. */
@Injectable()
export class EmbeddingRoutes implements RouteGroup {
  readonly handlers = [onRoute('POST /v1/embeddings', (call) => this.embed(call), { readsBody: true, direct: (call) => this.embed(call) })];

  constructor(@Inject(OperationDesk) private readonly desk: OperationDesk) {}

  private async embed(call: DirectCall): Promise<typeof ANSWERED> {
    const document = readDocument(call.request.body);
    const parsed = embeddingRequest.safeParse(document.value);
    if (!parsed.success) throw new RequestFault(faultOfIssues(parsed.error.issues, document.value));
    const request = parsed.data;
    const make = (context: OperationContext): WholeOperation => new WholeOperation({
      metered: 'embeddings', promptTokensEstimate: estimatePromptTokens(document.text.length), inputs: countOf(request), perform: (session) => embed(session, document, request, context),
    });
    return this.desk.serve(call, { name: 'embeddings', model: request.model, body: request, make });
  }
}

async function embed(session: EngineSession, document: JsonDocument, request: EmbeddingRequest, { endpoint }: OperationContext): Promise<OperationOutcome> {
  const { dialect, servedModel } = session;
  const format = request.encoding_format ?? 'float';
  const body = toEngineEmbedding(document, request, { servedModel, dialect, cacheSalt: session.cacheSalt, format });
  const reply = await session.whole('/v1/embeddings', body);
  if (reply.kind !== 'reply') return reply;
  const read = readEmbeddings(reply.status, reply.text, { dialect, model: endpoint.name, count: countOf(request), format, dimensions: request.dimensions ?? undefined });
  if (read.kind === 'fault') return { kind: 'failed', fault: withContextParam(read.fault, 'input') };
  return { kind: 'completed', usage: promptUsage(read.promptTokens), finishReason: null, answer: read.body };
}

/** Inputs of a request: one list of token ids is one input. */
function countOf({ input }: EmbeddingRequest): number {
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length;
}

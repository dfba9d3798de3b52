import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { ResponseInputItem, ResponseRequest, responseItemsQuery } from '@penstock/contract-http';
import { checkChatRequest, checkResponseRequest, contextFault, inputItemsOf, noUsage, readJson, toChatBody, type JsonDocument, type ResponseBody } from '@penstock/domain-serving';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import { withinContext } from '../chat/chat-tokens.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { readDocument } from '../http/read-body.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';
import type { EngineSession } from './engine-session.js';
import { tokensOf } from './engine-tokens.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { ResponseOperation, responseIdOf, type ResponseJob } from './response-operation.js';
import { ResponseStore, type StoredResponse } from './response-store.js';
import { WholeOperation } from './whole-operation.js';

type ItemsQuery = z.output<typeof responseItemsQuery>;

const SWEEP_INTERVAL_MS = 600_000;

/** The Responses API: answered like a chat, and kept only when the caller asks for it. */
@Injectable()
export class ResponseRoutes implements RouteGroup, OnApplicationBootstrap, OnApplicationShutdown {
  readonly handlers = [
    onRoute('POST /v1/responses', (call) => this.create(call), { readsBody: true }),
    onRoute('GET /v1/responses/{response_id}', async (call) => (await this.find(call)).response),
    onRoute('DELETE /v1/responses/{response_id}', (call) => this.delete(call)),
    onRoute<ItemsQuery>('GET /v1/responses/{response_id}/input_items', (call) => this.inputItems(call)),
    onRoute('POST /v1/responses/input_tokens', (call) => this.countTokens(call), { readsBody: true }),
    onRoute('POST /v1/responses/{response_id}/cancel', (call) => this.cancel(call)),
  ];
  private readonly store: ResponseStore;
  private stopSweeping: () => void = () => undefined;

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(OperationDesk) private readonly desk: OperationDesk) {
    this.store = new ResponseStore(ports);
  }

  onApplicationBootstrap(): void {
    // A store that is away now is swept the next time.
    this.stopSweeping = this.ports.timers.every(SWEEP_INTERVAL_MS, () => this.store.sweep().catch(() => undefined));
  }

  onApplicationShutdown(): void {
    this.stopSweeping();
  }

  private async create(call: RouteCall): Promise<typeof ANSWERED> {
    const { request, job } = await this.read(call);
    const make = (context: OperationContext): ResponseOperation => {
      const fault = contextFault(job.chat, context.contextTokens);
      if (fault !== undefined) throw new RequestFault({ ...fault, message: fault.message.replaceAll('max_completion_tokens', 'max_output_tokens'), param: 'max_output_tokens' });
      const chat = withinContext(job.chat, context.contextTokens, context.endpoint.serving.contextTokens, job.document.text.length);
      return new ResponseOperation({ ...job, chat }, context);
    };
    return this.desk.serve(call, { name: 'responses', model: request.model, body: request, serviceTier: request.service_tier, make });
  }

  /** What is asked, as the caller and as an engine would say it. */
  private async read(call: RouteCall): Promise<{ readonly request: ResponseRequest; readonly job: ResponseJob }> {
    const document = readDocument(call.request.body);
    const checked = checkResponseRequest(document);
    if (checked.kind === 'fault') throw new RequestFault(checked.fault);
    const { request } = checked;
    return { request, job: this.translate(call, document, request, await this.earlierItems(call, request)) };
  }

  private translate(call: RouteCall, document: JsonDocument, request: ResponseRequest, earlier: readonly ResponseInputItem[]): ResponseJob {
    const translated = toChatBody(document, request, earlier);
    if (translated.kind === 'fault') throw new RequestFault(translated.fault);
    const read = readJson(translated.text);
    if (read.kind === 'fault') throw new RequestFault(read.fault);
    const chat = checkChatRequest(read.document);
    if (chat.kind === 'fault') throw new RequestFault({ ...chat.fault, param: 'input' });
    const input = [...earlier, ...inputItemsOf(request)];
    return {
      request, document: read.document, chat: chat.request, now: () => this.ports.clock.now(),
      store: request.store === true ? (response) => this.keep(call, { input, response: { ...response, store: true } }) : undefined,
    };
  }

  /** What an earlier response was asked and what it answered. */
  private async earlierItems({ principal }: RouteCall, { previous_response_id: previous }: ResponseRequest): Promise<readonly ResponseInputItem[]> {
    if (previous === undefined || previous === null) return [];
    const stored = isId(previous) ? await this.store.get(principal.organisationId, previous) : undefined;
    if (stored === undefined) throw new RequestFault({ code: 'response_not_found', message: `Previous response with id '${previous.slice(0, 80)}' not found. Only responses that were created with 'store': true are kept.`, param: 'previous_response_id' });
    return [...stored.input, ...outputAsInput(stored.response)];
  }

  private async keep({ principal, requestId }: RouteCall, stored: StoredResponse): Promise<boolean> {
    try {
      await this.store.put(principal.organisationId, stored);
      return true;
    } catch (error) {
      // The answer was paid for; it is not thrown away because it cannot be kept.
      this.ports.logger.warn({ err: error, requestId, responseId: responseIdOf(requestId) }, 'a response could not be stored');
      return false;
    }
  }

  private async find({ principal, params }: RouteCall): Promise<StoredResponse> {
    const id = params['response_id'] ?? '';
    const stored = isId(id) ? await this.store.get(principal.organisationId, id) : undefined;
    if (stored === undefined) throw new RequestFault({ code: 'response_not_found', message: `Response with id '${id.slice(0, 80)}' not found. Only responses that were created with 'store': true are kept.`, param: 'response_id' });
    return stored;
  }

  private async delete(call: RouteCall): Promise<unknown> {
    const { response } = await this.find(call);
    await this.store.delete(call.principal.organisationId, response.id);
    return { id: response.id, object: 'response', deleted: true };
  }

  private async inputItems(call: RouteCall<ItemsQuery>): Promise<unknown> {
    const { input, response } = await this.find(call);
    const { after, order, limit } = call.query;
    const items = input.map((item, index) => ({ id: `item_${response.id.replace(/^resp_/, '')}_${index}`, ...listed(item) }));
    if (order === 'desc') items.reverse();
    const from = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && from === 0) throw new RequestFault({ code: 'invalid_value', message: `Invalid value for 'after': no item of this response has that id. Use the last id of the page before.`, param: 'after' });
    const data = items.slice(from, from + limit);
    return { object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: from + limit < items.length };
  }

  /** The input as the model would read it: with what it goes on from, instructions and tools, through its chat template. */
  private async countTokens(call: RouteCall): Promise<typeof ANSWERED> {
    const { request, job: { document: { value } } } = await this.read(call);
    const { messages, tools } = value as { messages: readonly unknown[]; tools?: readonly unknown[] };
    const perform = async (session: EngineSession): Promise<OperationOutcome> => {
      const asked = await tokensOf(session, { messages, tools });
      if (asked.kind !== 'tokens') return asked;
      return { kind: 'completed', usage: noUsage, finishReason: null, answer: JSON.stringify({ object: 'response.input_tokens', input_tokens: asked.tokens.length }) };
    };
    return this.desk.serve(call, { name: 'tokenize', model: request.model, make: () => new WholeOperation({ metered: null, promptTokensEstimate: 0, inputs: 1, perform }) });
  }

  private async cancel(call: RouteCall): Promise<never> {
    await this.find(call);
    throw new RequestFault({ code: 'unsupported_operation', message: 'Cannot cancel a synchronous response. A streamed one ends when its connection is closed; delete a stored one with DELETE.', param: 'response_id' });
  }
}

/** An input as the list shows it: text in parts. */
function listed(item: ResponseInputItem): object {
  if (!('role' in item)) return item;
  return { type: 'message', status: 'completed', ...item, content: typeof item.content === 'string' ? [{ type: 'input_text', text: item.content }] : item.content };
}

function outputAsInput({ output }: ResponseBody): readonly ResponseInputItem[] {
  return output.map((item) => item as unknown as ResponseInputItem);
}

import { Inject, Injectable } from '@nestjs/common';
import type { DetokenizeRequest, TokenizeRequest } from '@penstock/contract-http';
import { brokenAnswerFault, noUsage, remoteContentFault } from '@penstock/domain-serving';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type RouteCall, type RouteGroup } from '../http/route-call.js';
import type { EngineSession } from './engine-session.js';
import { askEngine, tokensOf } from './engine-tokens.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { WholeOperation } from './whole-operation.js';

/** `POST /v1/tokenize` and `/v1/detokenize`: the model's own tokenizer, in its engine. Neither uses tokens of the model. */
@Injectable()
export class TokenizeRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, TokenizeRequest>('POST /v1/tokenize', (call) => this.tokenize(call)),
    onRoute<unknown, DetokenizeRequest>('POST /v1/detokenize', (call) => this.detokenize(call)),
  ];

  constructor(@Inject(OperationDesk) private readonly desk: OperationDesk) {}

  private tokenize(call: RouteCall<unknown, TokenizeRequest>): Promise<typeof ANSWERED> {
    const { body: request } = call;
    const hasPrompt = typeof request.prompt === 'string';
    if (hasPrompt === Array.isArray(request.messages)) throw new RequestFault({ code: hasPrompt ? 'invalid_value' : 'missing_required_parameter', message: `Send either 'prompt' or 'messages'.`, param: 'prompt' });
    const remote = remoteContentFault(request.messages ?? []);
    if (remote !== undefined) throw new RequestFault(remote);
    return this.serve(call, 'tokenize', request.model, (session, context) => tokenize(session, request, context));
  }

  private detokenize(call: RouteCall<unknown, DetokenizeRequest>): Promise<typeof ANSWERED> {
    const { body: request } = call;
    return this.serve(call, 'detokenize', request.model, (session) => detokenize(session, request));
  }

  private serve(call: RouteCall, name: string, model: string, perform: (session: EngineSession, context: OperationContext) => Promise<OperationOutcome>): Promise<typeof ANSWERED> {
    return this.desk.serve(call, { name, model, make: (context) => new WholeOperation({ metered: null, promptTokensEstimate: 0, inputs: 1, perform: (session) => perform(session, context) }) });
  }
}

async function tokenize(session: EngineSession, { prompt, messages, add_special_tokens: special }: TokenizeRequest, { endpoint }: OperationContext): Promise<OperationOutcome> {
  const asked = await tokensOf(session, { prompt: prompt ?? undefined, messages: messages ?? undefined, special: special ?? undefined });
  if (asked.kind !== 'tokens') return asked;
  return answered({ count: asked.tokens.length, max_model_len: endpoint.serving.contextTokens, tokens: asked.tokens, token_strs: asked.texts });
}

async function detokenize(session: EngineSession, { tokens }: DetokenizeRequest): Promise<OperationOutcome> {
  const isLlamaCpp = session.dialect.kind === 'llama.cpp';
  const asked = await askEngine(session, '/detokenize', { ...(isLlamaCpp ? {} : { model: session.servedModel }), tokens }, 'detokenize');
  if (asked.kind !== 'body') return asked;
  const text = isLlamaCpp ? asked.body['content'] : asked.body['prompt'];
  return typeof text === 'string' ? answered({ prompt: text }) : { kind: 'failed', fault: brokenAnswerFault };
}

function answered(body: object): OperationOutcome {
  return { kind: 'completed', usage: noUsage, finishReason: null, answer: JSON.stringify(body) };
}

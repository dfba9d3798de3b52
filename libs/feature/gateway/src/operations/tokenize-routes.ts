import { Inject, Injectable } from '@nestjs/common';
import type { DetokenizeRequest, TokenizeRequest } from '@penstock/contract-http';
import { brokenAnswerFault, noUsage, readOptionalReply, remoteContentFault, type EngineFault } from '@penstock/domain-serving';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type RouteCall, type RouteGroup } from '../http/route-call.js';
import type { EngineSession } from './engine-session.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { WholeOperation } from './whole-operation.js';

type Asked = { readonly kind: 'body'; readonly body: Readonly<Record<string, unknown>> } | { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'aborted' };

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

async function tokenize(session: EngineSession, request: TokenizeRequest, { endpoint }: OperationContext): Promise<OperationOutcome> {
  const isLlamaCpp = session.dialect.kind === 'llama.cpp';
  const special = request.add_special_tokens ?? undefined;
  let content = request.prompt ?? undefined;
  if (isLlamaCpp && content === undefined) {
    const templated = await ask(session, '/apply-template', { messages: request.messages }, 'take messages');
    if (templated.kind !== 'body') return templated;
    content = String(templated.body['prompt']);
  }
  const asked = isLlamaCpp
    ? await ask(session, '/tokenize', { content, add_special: special ?? typeof request.prompt === 'string', parse_special: true }, 'tokenize')
    : await ask(session, '/tokenize', { model: session.servedModel, ...(content === undefined ? { messages: request.messages } : { prompt: content }), ...(special === undefined ? {} : { add_special_tokens: special }) }, 'tokenize');
  if (asked.kind !== 'body') return asked;
  const { tokens, token_strs: texts } = asked.body;
  if (!Array.isArray(tokens) || !tokens.every((token) => Number.isInteger(token))) return { kind: 'failed', fault: brokenAnswerFault };
  return answered({ count: tokens.length, max_model_len: endpoint.serving.contextTokens, tokens, token_strs: Array.isArray(texts) ? texts : null });
}

async function detokenize(session: EngineSession, { tokens }: DetokenizeRequest): Promise<OperationOutcome> {
  const isLlamaCpp = session.dialect.kind === 'llama.cpp';
  const asked = await ask(session, '/detokenize', { ...(isLlamaCpp ? {} : { model: session.servedModel }), tokens }, 'detokenize');
  if (asked.kind !== 'body') return asked;
  const text = isLlamaCpp ? asked.body['content'] : asked.body['prompt'];
  return typeof text === 'string' ? answered({ prompt: text }) : { kind: 'failed', fault: brokenAnswerFault };
}

async function ask(session: EngineSession, path: string, body: object, what: string): Promise<Asked> {
  const reply = await session.whole(path, JSON.stringify(body));
  if (reply.kind !== 'reply') return reply;
  const read = readOptionalReply(reply.status, reply.text, session.dialect, what);
  if (read.kind === 'fault') return { kind: 'failed', fault: read.fault };
  return typeof read.body === 'object' && read.body !== null ? { kind: 'body', body: read.body as Readonly<Record<string, unknown>> } : { kind: 'failed', fault: brokenAnswerFault };
}

function answered(body: object): OperationOutcome {
  return { kind: 'completed', usage: noUsage, finishReason: null, answer: JSON.stringify(body) };
}

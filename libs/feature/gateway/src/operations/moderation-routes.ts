import { Inject, Injectable } from '@nestjs/common';
import { MODERATION_MODEL_DEFAULT, type ModerationRequest } from '@penstock/contract-http';
import { brokenAnswerFault, estimatePromptTokens, noUsage, readClasses, readOptionalReply, toModeration, unsupportedOperationFault, withContextParam } from '@penstock/domain-serving';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type RouteCall, type RouteGroup } from '../http/route-call.js';
import type { EngineSession } from './engine-session.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { WholeOperation } from './whole-operation.js';

/** `POST /v1/moderations`: by a model that classifies, deployed or attached under the name that the request gives, or under OpenAI's. */
@Injectable()
export class ModerationRoutes implements RouteGroup {
  readonly handlers = [onRoute<unknown, ModerationRequest>('POST /v1/moderations', (call) => this.moderate(call))];

  constructor(@Inject(OperationDesk) private readonly desk: OperationDesk) {}

  private async moderate(call: RouteCall<unknown, ModerationRequest>): Promise<typeof ANSWERED> {
    const texts = textsOf(call.body);
    const model = call.body.model ?? MODERATION_MODEL_DEFAULT;
    const promptTokensEstimate = estimatePromptTokens(texts.reduce((sum, text) => sum + text.length, 0));
    const make = (context: OperationContext): WholeOperation => new WholeOperation({ metered: 'embeddings', promptTokensEstimate, inputs: texts.length, perform: (session) => moderate(session, texts, context) });
    try {
      return await this.desk.serve(call, { name: 'moderations', model, make });
    } catch (error) {
      if (call.body.model !== undefined && call.body.model !== null) throw error;
      throw error instanceof RequestFault && error.fault.code === 'model_not_found'
        ? new RequestFault({ code: 'model_not_found', message: `There is no model '${MODERATION_MODEL_DEFAULT}' here. Deploy or attach a model that classifies under that name, or name one in 'model'.` }, { cause: error })
        : error;
    }
  }
}

async function moderate(session: EngineSession, texts: readonly string[], { endpoint, requestId }: OperationContext): Promise<OperationOutcome> {
  const reply = await session.whole('/classify', JSON.stringify({ model: session.servedModel, input: texts }));
  if (reply.kind !== 'reply') return reply;
  const read = readOptionalReply(reply.status, reply.text, session.dialect, 'classify texts');
  if (read.kind === 'fault') return { kind: 'failed', fault: withContextParam(read.fault, 'input') };
  const classes = readClasses(read.body, texts.length);
  if (classes === undefined) return { kind: 'failed', fault: brokenAnswerFault };
  const results = classes.map(toModeration);
  if (results.some((result) => result === undefined)) return { kind: 'failed', fault: unsupportedOperationFault('moderate: its classes are none of the categories of this route') };
  const tokens = (read.body as { usage?: { prompt_tokens?: unknown } }).usage?.prompt_tokens;
  const usage = typeof tokens === 'number' && Number.isSafeInteger(tokens) ? { ...noUsage, promptTokens: tokens, known: true } : noUsage;
  return { kind: 'completed', usage, finishReason: null, answer: JSON.stringify({ id: `modr-${requestId.replace(/^req_/, '')}`, model: endpoint.name, results }) };
}

/** Each text is judged by itself; the parts of one are one. */
function textsOf({ input }: ModerationRequest): readonly string[] {
  if (typeof input === 'string') return [input];
  const parts = input.filter((item) => typeof item !== 'string');
  if (parts.length === 0) return input.filter((item) => typeof item === 'string');
  const image = parts.findIndex(({ type }) => type === 'image_url');
  if (image >= 0) throw new RequestFault({ code: 'unsupported_value', message: 'Images are not moderated here. Send the text alone.', param: `input[${image}].type` });
  return [parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')];
}

import type { EngineFault } from './engine-dialect.js';
import { isRecord, recordAt } from './json-fields.js';

/** Longer messages of an engine are cut: some repeat the whole request. */
const ENGINE_MESSAGE_MAX = 500;

/** The parts of an engine's error body, whichever of the known shapes it has. */
export interface EngineErrorParts {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  /** Numeric `code` where the body has one: the status that the engine meant. */
  readonly code: number | undefined;
}

/** Reads `{error:{message,type,param,code}}`, `{error:"text"}`, `{detail:"text"}` and the same without an envelope, as older engines have it; undefined when the body is none of them. */
export function readErrorParts(body: unknown): EngineErrorParts | undefined {
  if (!isRecord(body)) return undefined;
  const error = recordAt(body, 'error') ?? (body['object'] === 'error' || isBareFault(body) ? body : undefined);
  if (error !== undefined) return partsOf(error);
  if (typeof body['error'] === 'string') return { message: body['error'], type: '', param: null, code: undefined };
  if (typeof body['detail'] === 'string' && body['choices'] === undefined) return { message: body['detail'], type: '', param: null, code: undefined };
  return undefined;
}

function partsOf(error: Readonly<Record<string, unknown>>): EngineErrorParts {
  const status = [error['code'], error['statusCode'], error['http_status_code']].find((value) => typeof value === 'number');
  return { message: textOf(error['message']), type: textOf(error['type']), param: typeof error['param'] === 'string' ? error['param'] : null, code: status };
}

/** `{statusCode,message}`: a body that says a message and answers nothing. */
function isBareFault(body: Readonly<Record<string, unknown>>): boolean {
  return typeof body['message'] === 'string' && typeof body['statusCode'] === 'number' && body['choices'] === undefined && body['data'] === undefined;
}

export function contextLengthFault(contextTokens: number | undefined, promptTokens: number | undefined): EngineFault {
  const limit = contextTokens === undefined ? 'The model\'s context is too short for this request.' : `This model's maximum context length is ${contextTokens} tokens.`;
  const used = promptTokens === undefined ? '' : ` However, your messages resulted in ${promptTokens} tokens.`;
  return { code: 'context_length_exceeded', message: `${limit}${used} Please reduce the length of the messages.`, param: 'messages', retryElsewhere: false };
}

/** The engine refused the request itself: another replica would refuse it too. */
export function rejectedFault(parts: EngineErrorParts): EngineFault {
  const message = parts.message === '' ? 'The engine refused the request.' : parts.message.replace(/\s+/g, ' ').slice(0, ENGINE_MESSAGE_MAX);
  return { code: 'request_rejected_by_engine', message, param: parts.param?.replace(/^body\./, '') ?? null, retryElsewhere: false };
}

/** The engine is at its own limit, which lies beyond ours: somewhere else there may be room. */
export const busyFault: EngineFault = {
  code: 'no_capacity', message: 'The model is at capacity. Try again shortly.', param: null, retryElsewhere: true,
};

export const loadingFault: EngineFault = {
  code: 'model_loading', message: 'The model is still loading. Try again shortly.', param: null, retryElsewhere: true,
};

/** Says nothing of what happened inside: those words are for the log. */
export const failedFault: EngineFault = {
  code: 'replica_failed', message: 'The replica that worked on the request failed. Try again.', param: null, retryElsewhere: true,
};

export const brokenAnswerFault: EngineFault = {
  code: 'engine_response_invalid', message: 'The model\'s answer broke off before it was complete. Try again.', param: null, retryElsewhere: true,
};

/** Another replica has the same engine, and the client has all that it asked for. */
export const overrunFault: EngineFault = {
  code: 'engine_response_invalid', message: 'The model went on beyond the limit of the request and was stopped.', param: null, retryElsewhere: false,
};

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

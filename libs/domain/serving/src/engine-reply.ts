import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault, failedFault } from './engine-fault.js';

export type EngineReply = { readonly kind: 'body'; readonly body: unknown } | { readonly kind: 'fault'; readonly fault: EngineFault };

/** Reads a whole answer of an engine. A page of HTML from something in between is a fault like any other, and its text goes nowhere. */
export function readReply(status: number, text: string, dialect: EngineDialect): EngineReply {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { kind: 'fault', fault: status >= 400 ? dialect.readFault(status, undefined) ?? failedFault : brokenAnswerFault };
  }
  const fault = dialect.readFault(status, body) ?? (status >= 400 ? failedFault : undefined);
  return fault === undefined ? { kind: 'body', body } : { kind: 'fault', fault };
}

/** Statuses by which an engine says that it has no such route, or that the model in it cannot do that. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

/** As {@link readReply}, for what only some models can do: `what` completes "This model does not …". */
export function readOptionalReply(status: number, text: string, dialect: EngineDialect, what: string): EngineReply {
  if (ABSENT.has(status)) return { kind: 'fault', fault: unsupportedOperationFault(what) };
  return readReply(status, text, dialect);
}

export function unsupportedOperationFault(what: string): EngineFault {
  return { code: 'unsupported_operation', message: `This model does not ${what}. Choose a model that does.`, param: 'model', retryElsewhere: false };
}

/** Says of a prompt that is too long which field it came in. */
export function withContextParam(fault: EngineFault, param: string): EngineFault {
  return fault.code === 'context_length_exceeded' ? { ...fault, param, message: fault.message.replaceAll('messages', param) } : fault;
}

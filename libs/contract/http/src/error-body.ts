import { limitMet } from '@penstock/contract-commands';
import { z } from 'zod';
import { describeError, type ErrorDescriptor } from './error-catalogue.js';
import type { tensorErrorBody } from './tensors.js';

/** OpenAI's error envelope: its four keys are always there. `limit` is ours, where a limit was met. */
export const openAiErrorBody = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
    limit: limitMet.optional(),
  }),
});
export type OpenAiErrorBody = z.infer<typeof openAiErrorBody>;

/** RFC 9457 problem details, as the admin API sends them. */
export const problemBody = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  param: z.string().nullable(),
  request_id: z.string(),
  limit: limitMet.optional(),
});
export type ProblemBody = z.infer<typeof problemBody>;

/** What went wrong, before it is rendered for one of the two APIs. */
export interface ApiFault {
  readonly code: string;
  readonly message: string;
  readonly param?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  /** OpenAI's `error.type` where one code has several: a limit on tokens is `tokens`, one on requests `requests`. */
  readonly type?: ErrorDescriptor['type'] | undefined;
  /** Overrides the catalogue where the same code may or may not pass later: a request above a whole limit never does. */
  readonly retryable?: boolean | undefined;
  readonly limit?: z.infer<typeof limitMet> | undefined;
}

export function toOpenAiError(fault: ApiFault): OpenAiErrorBody {
  const { type, code } = describeError(fault.code);
  return { error: { message: fault.message, type: fault.type ?? type, param: fault.param ?? null, code, ...(fault.limit === undefined ? {} : { limit: fault.limit }) } };
}

export function toTensorError(fault: ApiFault): z.infer<typeof tensorErrorBody> {
  return { error: fault.message, code: describeError(fault.code).code, ...(fault.limit === undefined ? {} : { limit: fault.limit }) };
}

export function toProblem(fault: ApiFault, requestId: string): ProblemBody {
  const { status, code } = describeError(fault.code);
  return { type: 'about:blank', title: code.replaceAll('_', ' '), status, detail: fault.message, code, param: fault.param ?? null, request_id: requestId, ...(fault.limit === undefined ? {} : { limit: fault.limit }) };
}

/** Clients stop waiting for hints above a minute, so a longer one is cut to it. */
const RETRY_HINT_MS_MAX = 60_000;

/** `x-should-retry`, and for what may pass `retry-after-ms` with the rounded-up `retry-after`. */
export function retryHeaders(fault: ApiFault): Record<string, string> {
  const retryable = fault.retryable ?? describeError(fault.code).retryable;
  const headers: Record<string, string> = { 'x-should-retry': String(retryable) };
  if (retryable && fault.retryAfterMs !== undefined) {
    const waitMs = Math.min(Math.max(1, Math.ceil(fault.retryAfterMs)), RETRY_HINT_MS_MAX);
    headers['retry-after-ms'] = String(waitMs);
    headers['retry-after'] = String(Math.max(1, Math.ceil(waitMs / 1_000)));
  }
  return headers;
}

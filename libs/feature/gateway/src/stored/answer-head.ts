import { createHash } from 'node:crypto';
import { z } from 'zod';

/** Everything about a stored answer but its bytes. */
export const answerHead = z.object({
  id: z.string(),
  /** SHA-256 over method, path, body and the length of the body's head, hexadecimal: the same key with another request is a mistake. */
  fingerprint: z.string(),
  /** Of the execution, however often the answer is given out. */
  requestId: z.string(),
  endpointId: z.string().nullable(),
  isAsync: z.boolean(),
  state: z.enum(['running', 'done']),
  /** Which execution this is; another one takes over where a gateway died. */
  attempt: z.int().positive(),
  startedAtMs: z.number(),
  /** Written again and again while it runs, so that others see whether anybody still works on it. */
  touchedAtMs: z.number(),
  status: z.int().nullable(),
  headers: z.record(z.string(), z.string()),
  /** It became too large, so not all of it is stored. */
  isTruncated: z.boolean(),
  /** Pieces that are stored so far. */
  pieces: z.int().nonnegative(),
});
export type AnswerHead = z.infer<typeof answerHead>;

/** Stored answers are kept for so long. */
export const ANSWER_TTL_MS = 24 * 3_600_000;
/** Nobody works any more on an answer that was not touched for so long. */
const ANSWER_STALE_MS = 20_000;

/** Where an organisation's answer is stored. Nothing of what a caller chose stands in it, and no other organisation finds it. */
export function answerKey(organisationId: string, answerId: string): string {
  return createHash('sha256').update(`${organisationId}\n${answerId}`).digest('hex');
}

/** The id that follows from an idempotency key, so that every gateway finds the same answer. */
export function answerIdOf(organisationId: string, idempotencyKey: string): string {
  return `async_${createHash('sha256').update(`idempotency\n${organisationId}\n${idempotencyKey}`).digest('hex').slice(0, 32)}`;
}

/** `headLength` divides a body of tensors, so the same bytes under another length are another request. */
export function fingerprintOf(method: string, path: string, body: Uint8Array, headLength = ''): string {
  return createHash('sha256').update(`${method} ${path}${headLength === '' ? '' : ` ${headLength}`}\n`).update(body).digest('hex');
}

/** Its gateway died or stopped in the middle, and nobody works on it any more. */
export function isDeserted({ state, touchedAtMs }: AnswerHead, nowMs: number): boolean {
  return state === 'running' && nowMs - touchedAtMs > ANSWER_STALE_MS;
}

import type { LatencyClass, ServiceLevel } from '@penstock/contract-events';
import type { Refusal } from '@penstock/kernel';
import type { LatencyObjective } from '../profiles/replica-profile.js';

/**
 * The objective of each class, in milliseconds. Interactive is what a person who reads along takes for prompt; the others
 * are for programs that wait and for work over night.
 */
export const CLASS_OBJECTIVES: Readonly<Record<LatencyClass, LatencyObjective>> = {
  interactive: { ttftMs: 2_000, itlMs: 80 },
  standard: { ttftMs: 10_000, itlMs: 200 },
  batch: { ttftMs: 120_000, itlMs: 1_000 },
};

/** A promise begins at most this far ahead and lasts at most this long: nobody knows the fleet of later. */
export const RESERVATION_DAYS_MAX = 1_100;

const DAY_MS = 86_400_000;

/** Requests per second that are promised: the larger of both rates. 0 where replicas are promised by number. */
export function promisedRate(level: ServiceLevel): number {
  const tokensOfOne = level.promptTokens + level.completionTokens;
  return Math.max(level.requestsPerS, tokensOfOne > 0 ? level.tokensPerS / tokensOfOne : 0);
}

export const objectiveOf = (level: ServiceLevel): LatencyObjective => ({ ttftMs: level.ttftMs, itlMs: level.itlMs });

export const beginMsOf = (level: ServiceLevel): number => Date.parse(level.from);

/** The end in milliseconds; infinity where it has none. */
export const endMsOf = (level: ServiceLevel): number => (level.to === null ? Number.POSITIVE_INFINITY : Date.parse(level.to));

/** What is wrong with the terms themselves, whatever the fleet has. */
export function checkTerms(level: ServiceLevel, nowMs: number): Refusal | undefined {
  const rate = promisedRate(level);
  if (level.replicas > 0 && rate > 0) return wrong('replicas', 'Give a rate or a number of replicas, not both: leave one of them out.');
  if (level.replicas === 0 && rate === 0) return wrong('requestsPerS', 'Nothing is asked for: give requests or tokens per second, or a number of replicas.');
  if (level.promptTokens + level.completionTokens === 0) return wrong('promptTokens', 'A typical request has no tokens: give the length of its prompt and of its answer.');
  if (level.ttftMs <= 0) return wrong('ttftMs', 'No engine answers in no time: give more than 0 ms to the first token.');
  const beginMs = beginMsOf(level);
  const endMs = endMsOf(level);
  if (endMs <= beginMs) return wrong('to', `It ends (${level.to}) before it begins (${level.from}): give a later end or none.`);
  if (endMs <= nowMs) return wrong('to', `It ended already (${level.to}): give an end in the future or none.`);
  if (beginMs > nowMs + RESERVATION_DAYS_MAX * DAY_MS) return wrong('from', `It begins more than ${RESERVATION_DAYS_MAX} days ahead: reserve nearer to its beginning.`);
  if (Number.isFinite(endMs) && endMs - beginMs > RESERVATION_DAYS_MAX * DAY_MS) return wrong('to', `It lasts more than ${RESERVATION_DAYS_MAX} days: give an earlier end, or none.`);
  return undefined;
}

function wrong(param: string, message: string): Refusal {
  return { code: 'invalid_value', message, param };
}

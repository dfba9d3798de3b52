import { readFileSync } from 'node:fs';
import type { UsageRecord } from '@penstock/contract-events';

/** What the engine really did for one request, over every attempt. */
export interface EngineTruth {
  produced: number;
  delivered: number;
  promptTokens: number;
  /** How each attempt ended; empty while one is open, which happens when the engine itself was killed. */
  readonly endings: string[];
}

/** Every request of a customer has an id of the gateway's. */
const CUSTOMER_PREFIX = 'req_';

/** Reads the engine's truth ledger. A torn last line, left by a kill, is no entry. */
export function readTruth(path: string): Map<string, EngineTruth> {
  const truth = new Map<string, EngineTruth>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line.length === 0) continue;
    let entry: { event: string; requestId: string; promptTokens: number; producedTokens?: number; deliveredTokens?: number; finished?: string };
    try {
      entry = JSON.parse(line) as typeof entry;
    } catch {
      continue;
    }
    // The agent's own warm-ups and probes are the house's tokens, not a customer's.
    if (!entry.requestId.startsWith(CUSTOMER_PREFIX)) continue;
    const known = truth.get(entry.requestId) ?? { produced: 0, delivered: 0, promptTokens: entry.promptTokens, endings: [] };
    if (entry.event === 'end') {
      known.produced += entry.producedTokens ?? 0;
      known.delivered += entry.deliveredTokens ?? 0;
      known.endings.push(entry.finished ?? 'unknown');
    }
    truth.set(entry.requestId, known);
  }
  return truth;
}

export interface Comparison {
  /** Requests that the engine worked on and that no usage event tells of. */
  readonly lost: readonly string[];
  /** Requests with more tokens on the bill than were produced, or counted more than once. */
  readonly doubled: readonly string[];
  /** Completed requests whose tokens on the bill differ from the engine's, to the token. */
  readonly wrong: readonly string[];
  readonly completed: number;
  readonly ended: number;
}

/** Compares every request in the engine's ledger with what was recorded for it. */
export function compareUsage(truth: ReadonlyMap<string, EngineTruth>, events: readonly UsageRecord[]): Comparison {
  const byRequest = new Map<string, UsageRecord[]>();
  for (const event of events) byRequest.set(event.requestId, [...(byRequest.get(event.requestId) ?? []), event]);
  const lost: string[] = [];
  const doubled: string[] = [];
  const wrong: string[] = [];
  let completed = 0;
  for (const [requestId, real] of truth) {
    const recorded = byRequest.get(requestId) ?? [];
    const [first] = recorded;
    if (first === undefined) {
      lost.push(requestId);
      continue;
    }
    if (recorded.length > 1 || first.completionTokens > real.produced) doubled.push(requestId);
    if (first.status !== 'completed') continue;
    completed += 1;
    if (first.completionTokens !== real.produced || first.promptTokens !== real.promptTokens) wrong.push(requestId);
  }
  return { lost, doubled, wrong, completed, ended: truth.size };
}

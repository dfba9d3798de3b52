import { createEngineModel, type EngineMetrics, type EngineParams, type EngineRequest } from '@penstock/domain-engine-model';

/** A request and when it comes. */
export interface TraceRequest extends EngineRequest {
  /** Milliseconds from the start of the trace. */
  readonly arrivalMs: number;
}

/** What one request saw, in milliseconds. */
export interface RequestTiming {
  readonly id: string;
  readonly arrivalMs: number;
  readonly queuedMs: number;
  /** Until the first token. */
  readonly ttftMs: number;
  /** Between tokens after the first, on average; undefined for an answer of one token. */
  readonly tpotMs: number | undefined;
  /** Until the last token. */
  readonly e2eMs: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

export interface TraceOutcome {
  /** In the order of the trace. What the engine refused or failed is missing. */
  readonly timings: readonly RequestTiming[];
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
  readonly failed: readonly string[];
  readonly endedMs: number;
  readonly metrics: EngineMetrics;
}

interface Progress {
  readonly request: TraceRequest;
  queuedMs: number;
  firstMs: number;
  lastMs: number;
  cachedTokens: number;
  tokens: number;
}

/** Runs a trace through one engine in virtual time: what would take an hour takes a moment, and always the same. */
export function simulateTrace(requests: readonly TraceRequest[], params: EngineParams): TraceOutcome {
  const engine = createEngineModel(params);
  const order = [...requests].sort((left, right) => left.arrivalMs - right.arrivalMs);
  const progress = new Map<string, Progress>();
  const refused: { id: string; reason: string }[] = [];
  const failed: string[] = [];
  let next = 0;
  let nowMs = 0;
  for (;;) {
    for (let request = order[next]; request !== undefined && request.arrivalMs <= nowMs; request = order[next]) {
      next += 1;
      const submission = engine.submit(request, request.arrivalMs);
      if (submission.kind === 'queued') progress.set(request.id, { request, queuedMs: 0, firstMs: 0, lastMs: 0, cachedTokens: 0, tokens: 0 });
      else refused.push({ id: request.id, reason: submission.kind === 'refused' ? submission.reason : 'The queue is full.' });
    }
    const step = engine.step(nowMs);
    if (step === undefined) {
      const upcoming = order[next];
      if (upcoming === undefined) break;
      nowMs = upcoming.arrivalMs;
      continue;
    }
    if ('outOfMemory' in step) {
      failed.push(...step.failed);
      for (const id of step.failed) progress.delete(id);
      continue;
    }
    nowMs += step.durationMs;
    for (const token of step.tokens) {
      const seen = progress.get(token.id);
      if (seen === undefined) continue;
      if (seen.tokens === 0) Object.assign(seen, { firstMs: nowMs, queuedMs: token.queuedMs, cachedTokens: token.cachedTokens });
      seen.tokens += 1;
      seen.lastMs = nowMs;
    }
  }
  const timings = requests.flatMap(({ id }) => progress.get(id) ?? []).map(timingOf);
  return { timings, refused, failed, endedMs: nowMs, metrics: engine.metrics() };
}

function timingOf({ request, queuedMs, firstMs, lastMs, cachedTokens, tokens }: Progress): RequestTiming {
  return {
    id: request.id, arrivalMs: request.arrivalMs, queuedMs, cachedTokens, outputTokens: tokens,
    ttftMs: firstMs - request.arrivalMs, e2eMs: lastMs - request.arrivalMs,
    tpotMs: tokens > 1 ? (lastMs - firstMs) / (tokens - 1) : undefined,
  };
}

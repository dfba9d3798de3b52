import { createEngineModel, type EngineMetrics, type EngineModel, type EngineParams, type EngineRequest, type StepResult } from '@penstock/domain-engine-model';

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

/** Says which engine a request goes to, and hears when it ended there. */
export interface TraceRouter<Request extends TraceRequest = TraceRequest> {
  /** Index of the engine; undefined keeps the request out. */
  choose(request: Request, nowMs: number, engines: readonly EngineModel[]): number | undefined;
  /** Its last token is there. */
  ended?(request: Request, engine: number, nowMs: number): void;
}

export interface FleetTraceOutcome {
  /** In the order of the trace. What an engine refused or failed is missing. */
  readonly timings: readonly RequestTiming[];
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
  readonly failed: readonly string[];
  readonly endedMs: number;
  /** By engine. */
  readonly metrics: readonly EngineMetrics[];
}

interface Progress<Request> {
  readonly request: Request;
  queuedMs: number;
  firstMs: number;
  lastMs: number;
  cachedTokens: number;
  tokens: number;
}

/** One engine and the step that it is in. */
interface Worker {
  readonly engine: EngineModel;
  step: StepResult | undefined;
  /** When the step ends; Infinity for an engine that has nothing to do, and -Infinity for one that may have. */
  dueMs: number;
}

/** Runs a trace through several engines in virtual time, each request on the engine that the router names. Deterministic as the router is. */
export function simulateFleetTrace<Request extends TraceRequest>(requests: readonly Request[], fleet: readonly EngineParams[], router: TraceRouter<Request>): FleetTraceOutcome {
  const run = new FleetRun(fleet, router);
  const order = [...requests].sort((left, right) => left.arrivalMs - right.arrivalMs);
  for (let next = 0; ;) {
    const nowMs = Math.max(run.nowMs, Math.min(run.nextDueMs(), order[next]?.arrivalMs ?? Infinity));
    if (nowMs === Infinity) break;
    run.advance(nowMs);
    for (let request = order[next]; request !== undefined && request.arrivalMs <= nowMs; request = order[next]) {
      next += 1;
      run.submit(request);
    }
    run.step();
  }
  return run.outcome(requests);
}

class FleetRun<Request extends TraceRequest> {
  nowMs = 0;
  private readonly workers: readonly Worker[];
  private readonly engines: readonly EngineModel[];
  private readonly progress = new Map<string, Progress<Request>>();
  private readonly refused: { id: string; reason: string }[] = [];
  private readonly failed: string[] = [];

  constructor(fleet: readonly EngineParams[], private readonly router: TraceRouter<Request>) {
    this.workers = fleet.map((params) => ({ engine: createEngineModel(params), step: undefined, dueMs: Infinity }));
    this.engines = this.workers.map(({ engine }) => engine);
  }

  nextDueMs(): number {
    let dueMs = Infinity;
    for (const worker of this.workers) if (worker.dueMs < dueMs) dueMs = worker.dueMs;
    return dueMs;
  }

  /** Lets the steps end that are due by now. */
  advance(nowMs: number): void {
    this.nowMs = nowMs;
    for (const [index, worker] of this.workers.entries()) {
      if (worker.step === undefined || worker.dueMs > nowMs) continue;
      this.deliver(worker.step, worker.dueMs, index);
      worker.step = undefined;
    }
  }

  submit(request: Request): void {
    const index = this.router.choose(request, this.nowMs, this.engines);
    const worker = index === undefined ? undefined : this.workers[index];
    if (worker === undefined) {
      this.refused.push({ id: request.id, reason: 'The router named no engine.' });
      return;
    }
    const submission = worker.engine.submit(request, request.arrivalMs);
    if (submission.kind === 'queued') {
      this.progress.set(request.id, { request, queuedMs: 0, firstMs: 0, lastMs: 0, cachedTokens: 0, tokens: 0 });
      if (worker.dueMs === Infinity) worker.dueMs = -Infinity;
      return;
    }
    this.refused.push({ id: request.id, reason: submission.kind === 'refused' ? submission.reason : 'The queue is full.' });
    this.router.ended?.(request, index ?? 0, this.nowMs);
  }

  /** Begins the next step of each engine that may. */
  step(): void {
    for (const [index, worker] of this.workers.entries()) {
      if (worker.step !== undefined || worker.dueMs > this.nowMs) continue;
      const step = worker.engine.step(this.nowMs);
      if (step !== undefined && 'outOfMemory' in step) {
        for (const id of step.failed) this.fail(id, index);
        worker.dueMs = Infinity;
        continue;
      }
      worker.step = step;
      worker.dueMs = step === undefined ? Infinity : this.nowMs + step.durationMs;
    }
  }

  outcome(requests: readonly Request[]): FleetTraceOutcome {
    const timings = requests.flatMap(({ id }) => this.progress.get(id) ?? []).map(timingOf);
    return { timings, refused: this.refused, failed: this.failed, endedMs: this.nowMs, metrics: this.engines.map((engine) => engine.metrics()) };
  }

  private deliver(step: StepResult, atMs: number, engine: number): void {
    for (const token of step.tokens) {
      const seen = this.progress.get(token.id);
      if (seen === undefined) continue;
      if (seen.tokens === 0) {
        seen.firstMs = atMs;
        seen.queuedMs = token.queuedMs;
        seen.cachedTokens = token.cachedTokens;
      }
      seen.tokens += 1;
      seen.lastMs = atMs;
    }
    for (const id of step.finished) {
      const seen = this.progress.get(id);
      if (seen !== undefined) this.router.ended?.(seen.request, engine, atMs);
    }
  }

  private fail(id: string, engine: number): void {
    const seen = this.progress.get(id);
    this.failed.push(id);
    this.progress.delete(id);
    if (seen !== undefined) this.router.ended?.(seen.request, engine, this.nowMs);
  }
}

function timingOf({ request, queuedMs, firstMs, lastMs, cachedTokens, tokens }: Progress<TraceRequest>): RequestTiming {
  return {
    id: request.id, arrivalMs: request.arrivalMs, queuedMs, cachedTokens, outputTokens: tokens,
    ttftMs: firstMs - request.arrivalMs, e2eMs: lastMs - request.arrivalMs,
    tpotMs: tokens > 1 ? (lastMs - firstMs) / (tokens - 1) : undefined,
  };
}

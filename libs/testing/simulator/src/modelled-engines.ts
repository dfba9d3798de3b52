import { createEngineModel, engineDefaults, linearStepTime, timingProfile, type EngineMetrics, type EngineModel, type EngineRequest, type Submission } from '@penstock/domain-engine-model';
import type { EngineHost, EngineWish, HostedEngine } from '@penstock/infra-simulated-fleet';
import type { Clock, Timers } from '@penstock/kernel';

/** What a request saw of its engine, in milliseconds of virtual time. */
export interface Answer {
  readonly id: string;
  readonly ttftMs: number;
  readonly e2eMs: number;
  readonly tokens: number;
  readonly cachedTokens: number;
}

export type AnswerEnd = { readonly kind: 'answered'; readonly answer: Answer } | { readonly kind: 'broken'; readonly reason: string };

/** Engines of a simulated fleet in virtual time: each is the engine model that engine-sim runs behind HTTP, with the same profile. */
export class ModelledEngines implements EngineHost {
  private readonly byReplica = new Map<string, ModelledEngine>();

  constructor(private readonly clock: Clock, private readonly timers: Timers) {}

  engineOf(replicaId: string): ModelledEngine | undefined {
    return this.byReplica.get(replicaId);
  }

  async open(wish: EngineWish): Promise<HostedEngine> {
    const engine = new ModelledEngine(wish, this.clock, this.timers);
    this.byReplica.set(wish.replicaId, engine);
    return {
      url: `http://sim.invalid/${wish.replicaId}`,
      close: async () => {
        this.byReplica.delete(wish.replicaId);
        engine.stop('the engine ended');
      },
    };
  }

  async close(): Promise<void> {
    for (const engine of this.byReplica.values()) engine.stop('the fleet ended');
    this.byReplica.clear();
  }
}

interface Request {
  readonly sentMs: number;
  readonly onEnd: (end: AnswerEnd) => void;
  firstMs: number | undefined;
  tokens: number;
  cachedTokens: number;
}

/** One engine of the fleet: it steps while it has work, and a step takes as long as the model says. */
export class ModelledEngine {
  private readonly model: EngineModel;
  private readonly requests = new Map<string, Request>();
  private isStepping = false;
  private isStopped = false;

  constructor({ timingModel, slots, contextTokens, timeScale }: EngineWish, private readonly clock: Clock, private readonly timers: Timers) {
    const profile = timingProfile(timingModel);
    const step = linearStepTime(profile.step);
    this.model = createEngineModel({
      ...engineDefaults, kvBlocks: Math.floor(profile.kvTokens / engineDefaults.blockTokens), sequencesMax: slots,
      modelTokensMax: Math.min(contextTokens, profile.kvTokens - (profile.kvTokens % engineDefaults.blockTokens)), stepTime: (load) => step(load) * timeScale,
    });
  }

  get metrics(): EngineMetrics {
    return this.model.metrics();
  }

  /** Sends a request; `onEnd` is told once, unless the submission is refused. */
  submit(request: EngineRequest, onEnd: (end: AnswerEnd) => void): Submission {
    if (this.isStopped) return { kind: 'refused', reason: 'the engine ended' };
    const submission = this.model.submit(request, this.clock.now());
    if (submission.kind !== 'queued') return submission;
    this.requests.set(request.id, { sentMs: this.clock.now(), onEnd, firstMs: undefined, tokens: 0, cachedTokens: 0 });
    if (!this.isStepping) this.step(this.clock.now());
    return submission;
  }

  stop(reason: string): void {
    this.isStopped = true;
    const broken = [...this.requests.values()];
    this.requests.clear();
    for (const { onEnd } of broken) onEnd({ kind: 'broken', reason });
  }

  private step(beginsMs: number): void {
    if (this.isStopped) return;
    const step = this.model.step(beginsMs);
    this.isStepping = step !== undefined;
    if (step === undefined) return;
    if ('outOfMemory' in step) return this.stop('CUDA out of memory');
    const endsMs = beginsMs + step.durationMs;
    this.timers.after(endsMs - this.clock.now(), () => {
      for (const token of step.tokens) this.take(token.id, token.cachedTokens, endsMs);
      for (const id of step.finished) this.finish(id, endsMs);
      this.step(endsMs);
    });
  }

  private take(id: string, cachedTokens: number, atMs: number): void {
    const request = this.requests.get(id);
    if (request === undefined) return;
    request.firstMs ??= atMs;
    request.tokens += 1;
    request.cachedTokens = cachedTokens;
  }

  private finish(id: string, atMs: number): void {
    const request = this.requests.get(id);
    if (request === undefined) return;
    this.requests.delete(id);
    request.onEnd({ kind: 'answered', answer: { id, ttftMs: (request.firstMs ?? atMs) - request.sentMs, e2eMs: atMs - request.sentMs, tokens: request.tokens, cachedTokens: request.cachedTokens } });
  }
}

import { chainKeys } from './block-keys.js';
import { checkEngineParams, type EngineParams } from './engine-params.js';
import { SeededNoise } from './seeded-noise.js';
import type { EngineRequest, Sequence } from './sequence.js';
import { loadOf, OutOfMemory, StepPlanner, type StepPlan } from './step-planner.js';
import type { StepLoad } from './step-time.js';

export type Submission =
  | { readonly kind: 'queued' }
  /** `waitingMax` sequences wait already. */
  | { readonly kind: 'queue-full' }
  /** The id is in use, the request is longer than `modelTokensMax`, or it asks for an adapter of an engine without adapter slots. */
  | { readonly kind: 'refused'; readonly reason: string };

/** One token of one sequence, there when the step ends. */
export interface ProducedToken {
  readonly id: string;
  readonly isFirst: boolean;
  /** Whether it is the last that the request allows. */
  readonly isLast: boolean;
  /** Prompt tokens of this sequence that were found in the cache. */
  readonly cachedTokens: number;
  /** From its submission until the step was planned that it first had a share in. */
  readonly queuedMs: number;
}

export interface StepResult {
  /** From the `now` of the call until its tokens are there, in milliseconds. */
  readonly durationMs: number;
  readonly tokens: readonly ProducedToken[];
  /** Sequences whose last allowed token this step produces. */
  readonly finished: readonly string[];
  /** Sequences that were thrown back into the queue while this step was planned or the one that follows it. */
  readonly preempted: readonly string[];
  readonly load: StepLoad;
}

/** The engine has died: nothing runs any more, and `failed` names what was inside. */
export interface EngineDeath {
  readonly outOfMemory: true;
  readonly failed: readonly string[];
}

export interface EngineMetrics {
  readonly running: number;
  readonly waiting: number;
  /** Share of the blocks that sequences use, from 0 to 1. Blocks that are only kept for later do not count. */
  readonly kvUsage: number;
  readonly kvBlocks: number;
  readonly kvBlocksUsed: number;
  /** Blocks that the prefix cache finds, in use or not. */
  readonly kvBlocksCached: number;
  readonly prefixQueriedTokens: number;
  readonly prefixHitTokens: number;
  readonly preemptions: number;
  readonly promptTokens: number;
  readonly producedTokens: number;
  readonly steps: number;
  readonly busyMs: number;
  readonly residentAdapters: readonly string[];
}

/** An engine that batches by iterations. It has no clock: who drives it says when a step begins and waits until it ends. */
export interface EngineModel {
  submit(request: EngineRequest, nowMs: number): Submission;
  /**
   * Runs one step that begins at `nowMs`. Undefined when nothing is to do. The tokens of a step are there `durationMs` later;
   * call again at that time, and not before. A sequence keeps its slot and blocks until the call after its last token.
   */
  step(nowMs: number): StepResult | EngineDeath | undefined;
  /** Ends a sequence before its last allowed token: the client left, or the answer is complete. False when it is unknown. */
  cancel(id: string): boolean;
  /** Tokens of its prompt that are in the cache now, in whole blocks. Changes nothing. */
  cachedTokens(request: EngineRequest): number;
  metrics(): EngineMetrics;
}

/** Throws {@link EngineParamsError} for parameters that make no engine. */
export function createEngineModel(params: EngineParams): EngineModel {
  checkEngineParams(params);
  return new IterationEngine(params);
}

class IterationEngine implements EngineModel {
  private readonly planner: StepPlanner;
  private readonly noise: SeededNoise;
  private readonly sequences = new Map<string, Sequence>();
  /** The step that runs, and the one planned behind it. */
  private current: StepPlan | undefined;
  private ahead: StepPlan | undefined;
  private submitted = 0;
  private promptTokens = 0;
  private producedTokens = 0;
  private steps = 0;
  private busyMs = 0;
  private isDead = false;

  constructor(private readonly params: EngineParams) {
    this.planner = new StepPlanner(params);
    this.noise = new SeededNoise(params.seed);
  }

  submit(request: EngineRequest, nowMs: number): Submission {
    const reason = this.reasonAgainst(request);
    if (reason !== undefined) return { kind: 'refused', reason };
    if (this.planner.waiting.size >= this.params.waitingMax) return { kind: 'queue-full' };
    this.submitted += 1;
    const sequence: Sequence = {
      id: request.id, number: this.submitted, promptTokens: request.promptTokens, outputTokens: request.outputTokens,
      adapter: request.scope?.adapter, submittedMs: nowMs, keys: chainKeys(request.contentKeys ?? [], request.scope ?? {}),
      blocks: [], rememberedBlocks: 0, computedTokens: 0, producedTokens: 0, cachedTokens: undefined, startedMs: undefined, preemptions: 0, state: 'waiting',
    };
    this.sequences.set(request.id, sequence);
    this.planner.waiting.add(sequence);
    this.promptTokens += request.promptTokens;
    return { kind: 'queued' };
  }

  private reasonAgainst(request: EngineRequest): string | undefined {
    const { modelTokensMax, adapterSlots, blockTokens } = this.params;
    const { promptTokens, outputTokens } = request;
    if (this.isDead) return 'The engine ran out of memory and has ended: start another.';
    if (this.sequences.has(request.id)) return `A sequence ${request.id} runs already: give each its own id.`;
    if (!Number.isSafeInteger(promptTokens) || promptTokens < 1) return `promptTokens is ${promptTokens}: give a whole number of at least 1.`;
    if (!Number.isSafeInteger(outputTokens) || outputTokens < 1) return `outputTokens is ${outputTokens}: give a whole number of at least 1.`;
    if (promptTokens + outputTokens > modelTokensMax) return `promptTokens and outputTokens make ${promptTokens + outputTokens}, and the engine takes ${modelTokensMax}: shorten one of them.`;
    if ((request.contentKeys?.length ?? 0) > Math.floor(promptTokens / blockTokens)) return `contentKeys has ${request.contentKeys?.length} keys, and ${promptTokens} tokens fill ${Math.floor(promptTokens / blockTokens)} blocks of ${blockTokens}.`;
    if (request.scope?.adapter !== undefined && adapterSlots === 0) return `The engine has no adapter slots, and the request asks for ${request.scope.adapter}: set adapterSlots.`;
    return undefined;
  }

  step(nowMs: number): StepResult | EngineDeath | undefined {
    if (this.isDead) return undefined;
    this.settle();
    try {
      const plan = this.nextPlan(nowMs);
      return plan === undefined ? undefined : this.run(plan.step, plan.preempted);
    } catch (error) {
      if (error instanceof OutOfMemory) return this.die();
      throw error;
    }
  }

  /** The sequences whose last token came with the step before leave now. */
  private settle(): void {
    for (const { sequence, isLastToken } of this.current?.shares ?? []) if (isLastToken && sequence.state === 'produced-all') this.remove(sequence);
    this.current = undefined;
  }

  private remove(sequence: Sequence): void {
    sequence.state = 'ended';
    this.sequences.delete(sequence.id);
    this.planner.leave(sequence);
  }

  private nextPlan(nowMs: number): { readonly step: StepPlan; readonly preempted: readonly Sequence[] } | undefined {
    const step = this.ahead ?? this.planner.plan(nowMs);
    const preempted = this.ahead === undefined ? [...step.preempted] : [];
    // When everything that ran was thrown back, the freed blocks let the oldest start again at once.
    const mayPlanMore = step.shares.length === 0 ? preempted.length > 0 : this.params.stepsAhead === 1;
    const next = mayPlanMore ? this.planner.plan(nowMs) : undefined;
    preempted.push(...(next?.preempted ?? []));
    const isEmpty = next === undefined || next.shares.length === 0;
    this.ahead = step.shares.length === 0 || isEmpty ? undefined : next;
    if (step.shares.length === 0) return isEmpty ? undefined : { step: next, preempted };
    return { step, preempted };
  }

  private run(plan: StepPlan, preempted: readonly Sequence[]): StepResult {
    const load = loadOf(plan.shares);
    const noise = this.params.jitter === 0 ? 1 : Math.max(0.1, 1 + this.params.jitter * this.noise.normal());
    const durationMs = this.params.stepTime(load) * noise + plan.adaptersLoaded * this.params.adapterLoadMs;
    // What was cancelled after the step was planned still costs its time, and produces nothing.
    const producing = plan.shares.filter((share) => share.produces && share.sequence.state !== 'ended');
    this.current = plan;
    this.steps += 1;
    this.busyMs += durationMs;
    this.producedTokens += producing.length;
    return {
      durationMs, load,
      tokens: producing.map(({ sequence, isFirstToken, isLastToken }) => ({ id: sequence.id, isFirst: isFirstToken, isLast: isLastToken, cachedTokens: sequence.cachedTokens ?? 0, queuedMs: (sequence.startedMs ?? sequence.submittedMs) - sequence.submittedMs })),
      finished: producing.filter((share) => share.isLastToken).map((share) => share.sequence.id),
      preempted: preempted.map((sequence) => sequence.id),
    };
  }

  private die(): EngineDeath {
    this.isDead = true;
    const failed = [...this.sequences.keys()];
    this.sequences.clear();
    return { outOfMemory: true, failed };
  }

  cancel(id: string): boolean {
    const sequence = this.sequences.get(id);
    if (sequence === undefined) return false;
    if (sequence.state === 'waiting') {
      this.sequences.delete(id);
      sequence.state = 'ended';
      this.planner.waiting.ended();
      return true;
    }
    this.remove(sequence);
    return true;
  }

  cachedTokens(request: EngineRequest): number {
    const { blockTokens, prefixCaching } = this.params;
    if (!prefixCaching) return 0;
    const keys = chainKeys(request.contentKeys ?? [], request.scope ?? {});
    return this.planner.pool.find(keys, Math.floor((request.promptTokens - 1) / blockTokens)).length * blockTokens;
  }

  metrics(): EngineMetrics {
    const { pool, running, waiting, prefixHitTokens, prefixQueriedTokens, preemptions, adapters } = this.planner;
    return {
      running: this.isDead ? 0 : running.length, waiting: this.isDead ? 0 : waiting.size,
      kvUsage: pool.usedCount / pool.size, kvBlocks: pool.size, kvBlocksUsed: pool.usedCount, kvBlocksCached: pool.cachedCount,
      prefixQueriedTokens, prefixHitTokens, preemptions,
      promptTokens: this.promptTokens, producedTokens: this.producedTokens, steps: this.steps, busyMs: this.busyMs,
      residentAdapters: adapters.resident,
    };
  }
}

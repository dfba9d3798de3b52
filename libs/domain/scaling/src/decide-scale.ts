import type { EndpointDeployedV1, WantedReplicasChangedV1 } from '@penstock/contract-events';
import { isCrowded, replicasFor, type EndpointLoadReading, type LoadMemory } from './load-memory.js';
import type { WantedReplicas } from './scaling-projection.js';

/** A queue has to last this long before another replica is wanted. */
export const QUEUE_WINDOW_MS = 5_000;

/** Load has to stay low this long before replicas are given up. */
export const LOW_LOAD_WINDOW_MS = 300_000;

export interface ScaleInput {
  readonly status: 'active' | 'retired';
  readonly scaling: EndpointDeployedV1['scaling'];
  readonly slotsPerReplica: number;
  /** undefined when nobody decided on this endpoint yet. */
  readonly wanted: WantedReplicas | undefined;
  readonly ready: number;
  readonly starting: number;
  readonly load: EndpointLoadReading;
  readonly memory: LoadMemory;
  readonly nowMs: number;
}

export interface ScaleDecision {
  readonly to: number;
  readonly rule: WantedReplicasChangedV1['rule'];
  readonly reason: string;
  readonly signals: Readonly<Record<string, number>>;
}

type Rule = (input: ScaleInput, wanted: number) => ScaleDecision | undefined;

/** The first rule that fires decides. Limits come first, then what callers wait for, then what can be saved. */
const RULES: readonly Rule[] = [retired, ceiling, floor, wake, queue, idle, lowLoad];

/**
 * How many replicas an endpoint should have from now on; undefined when nothing is to change.
 * `minReplicas` is the floor while the endpoint is in use. With a scale-to-zero time it sleeps at 0 after that idle time
 * until a request wakes it; with `minReplicas` 0 it starts asleep. Without data about load nothing is scaled down.
 */
export function decideScale(input: ScaleInput): ScaleDecision | undefined {
  const wanted = input.wanted?.replicas ?? 0;
  for (const rule of RULES) {
    const decision = rule(input, wanted);
    if (decision !== undefined) return decision.to === wanted ? undefined : decision;
  }
  return undefined;
}

/** What a request at a sleeping endpoint asks for; undefined when the endpoint is awake or takes no requests. */
export function decideWake(input: Pick<ScaleInput, 'status' | 'scaling' | 'wanted'>, waiting: number): ScaleDecision | undefined {
  if (input.status === 'retired' || (input.wanted?.replicas ?? 0) > 0) return undefined;
  const to = Math.min(Math.max(1, input.scaling.minReplicas), input.scaling.maxReplicas);
  return { to, rule: 'wake', reason: 'a request arrived at an endpoint with no replica', signals: { waiting } };
}

function retired(input: ScaleInput, wanted: number): ScaleDecision | undefined {
  if (input.status !== 'retired') return undefined;
  return { to: 0, rule: 'retired', reason: 'the endpoint was retired', signals: { wanted } };
}

function ceiling({ scaling }: ScaleInput, wanted: number): ScaleDecision | undefined {
  if (wanted <= scaling.maxReplicas) return undefined;
  return { to: scaling.maxReplicas, rule: 'ceiling', reason: `at most ${scaling.maxReplicas} replicas are allowed`, signals: { wanted, maxReplicas: scaling.maxReplicas } };
}

function floor(input: ScaleInput, wanted: number): ScaleDecision | undefined {
  const { minReplicas } = input.scaling;
  if (wanted >= minReplicas || isAsleep(input)) return undefined;
  return { to: Math.min(minReplicas, input.scaling.maxReplicas), rule: 'floor', reason: `at least ${minReplicas} replicas are to be there`, signals: { wanted, minReplicas } };
}

function isAsleep(input: ScaleInput): boolean {
  return input.wanted !== undefined && input.wanted.replicas === 0 && input.wanted.rule === 'idle' && input.scaling.scaleToZeroAfterIdleSeconds !== null;
}

function wake(input: ScaleInput): ScaleDecision | undefined {
  return input.load.kind === 'known' && input.load.waiting > 0 ? decideWake(input, input.load.waiting) : undefined;
}

function queue(input: ScaleInput, wanted: number): ScaleDecision | undefined {
  const { load, memory, nowMs, scaling } = input;
  const coming = input.ready + input.starting;
  if (load.kind === 'unknown' || wanted === 0 || wanted >= scaling.maxReplicas || coming < wanted) return undefined;
  if (!isCrowded(load.waiting, coming) || memory.crowdedSinceMs === null) return undefined;
  const crowdedMs = nowMs - Math.max(memory.crowdedSinceMs, input.wanted?.sinceMs ?? 0);
  if (crowdedMs < QUEUE_WINDOW_MS) return undefined;
  const signals = { waiting: load.waiting, running: load.running, ready: input.ready, starting: input.starting, crowdedMs };
  return { to: wanted + 1, rule: 'queue', reason: `${load.waiting} requests wait at ${coming} replicas for ${seconds(crowdedMs)} s`, signals };
}

function idle(input: ScaleInput, wanted: number): ScaleDecision | undefined {
  const { load, memory, nowMs, scaling } = input;
  const afterSeconds = scaling.scaleToZeroAfterIdleSeconds;
  if (afterSeconds === null || wanted === 0 || load.kind === 'unknown') return undefined;
  if (load.waiting > 0 || load.running > 0) return undefined;
  const unusedSinceMs = load.lastRequestAtMs ?? memory.unusedSinceMs;
  if (unusedSinceMs === null) return undefined;
  const idleMs = nowMs - Math.max(unusedSinceMs, input.wanted?.sinceMs ?? 0);
  if (idleMs < afterSeconds * 1_000) return undefined;
  return { to: 0, rule: 'idle', reason: `no request for ${seconds(idleMs)} s`, signals: { idleMs, afterMs: afterSeconds * 1_000 } };
}

function lowLoad(input: ScaleInput, wanted: number): ScaleDecision | undefined {
  const { memory, nowMs } = input;
  const lowest = Math.max(1, input.scaling.minReplicas);
  if (input.load.kind === 'unknown' || memory.calm === null || wanted <= lowest) return undefined;
  const calmMs = nowMs - Math.max(memory.calm.sinceMs, input.wanted?.sinceMs ?? 0);
  if (calmMs < LOW_LOAD_WINDOW_MS) return undefined;
  const to = Math.max(lowest, replicasFor(memory.calm.peakRunning, input.slotsPerReplica));
  if (to >= wanted) return undefined;
  const signals = { peakRunning: memory.calm.peakRunning, slotsPerReplica: input.slotsPerReplica, calmMs };
  return { to, rule: 'low-load', reason: `at most ${memory.calm.peakRunning} requests ran at once for ${seconds(calmMs)} s`, signals };
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}

import { isEnded, type FleetState, type LivingPhase, type ReplicaFailureCode } from '@penstock/domain-lifecycle';
import type { SchedulerConfig } from './config.js';

export interface StuckReplica {
  readonly replicaId: string;
  readonly phase: LivingPhase;
  readonly code: ReplicaFailureCode;
  readonly reason: string;
}

export interface StuckInput {
  readonly config: SchedulerConfig;
  readonly nowMs: number;
  /** Progress before this moment could not be seen. */
  readonly expectingSinceMs: number;
  readonly pullMovedAtMs: (replicaId: string) => number;
}

/** Replicas that stand still in a phase for longer than it may take. Pure. */
export function findStuckReplicas(fleet: FleetState, input: StuckInput): readonly StuckReplica[] {
  const stuck: StuckReplica[] = [];
  for (const replica of fleet.replicas.values()) {
    const { replicaId, phase } = replica;
    if (isEnded(phase)) continue;
    const limitMs = limitOf(phase, input.config);
    const movedAtMs = Math.max(replica.phaseSinceMs, input.expectingSinceMs, phase === 'pulling' ? input.pullMovedAtMs(replicaId) : 0);
    if (limitMs === null || input.nowMs - movedAtMs < limitMs) continue;
    const code = phase === 'draining' ? 'unreachable' : 'start_timeout';
    stuck.push({ replicaId, phase, code, reason: `${DESCRIPTIONS[phase]} for ${Math.round((input.nowMs - movedAtMs) / 1_000)} s` });
  }
  return stuck;
}

const DESCRIPTIONS: Readonly<Record<LivingPhase, string>> = {
  placed: 'the agent did not take up the placement',
  pulling: 'the download made no progress',
  loading: 'the engine did not finish loading',
  warming: 'the engine did not answer the warm-up',
  ready: 'ready',
  draining: 'the drain did not end',
};

function limitOf(phase: LivingPhase, config: SchedulerConfig): number | null {
  switch (phase) {
    case 'placed': return config.PLACED_TIMEOUT_MS;
    case 'pulling': return config.PULL_STALL_TIMEOUT_MS;
    case 'loading': return config.LOAD_TIMEOUT_MS;
    case 'warming': return config.WARM_UP_TIMEOUT_MS;
    case 'draining': return config.DRAIN_STUCK_TIMEOUT_MS;
    case 'ready': return null;
  }
}

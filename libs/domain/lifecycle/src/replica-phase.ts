import type { ReplicaPhase } from '@penstock/contract-commands';

export type { ReplicaPhase };

/** Phases in which a replica holds memory. */
export type LivingPhase = Exclude<ReplicaPhase, 'stopped' | 'failed'>;

/** A start passes through these in order; it may skip some (nothing to pull), never go back. */
const STARTING: readonly ReplicaPhase[] = ['placed', 'pulling', 'loading', 'warming'];

export function isEnded(phase: ReplicaPhase): phase is 'stopped' | 'failed' {
  return phase === 'stopped' || phase === 'failed';
}

export function isLiving(phase: ReplicaPhase): phase is LivingPhase {
  return !isEnded(phase);
}

export function isStarting(phase: ReplicaPhase): boolean {
  return STARTING.includes(phase);
}

/** True when a start in phase `from` may enter phase `to`. */
export function mayAdvance(from: ReplicaPhase, to: ReplicaPhase): boolean {
  const target = STARTING.indexOf(to);
  return isStarting(from) && target > STARTING.indexOf(from);
}

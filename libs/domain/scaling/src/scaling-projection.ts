import { asCatalogueEvent, type WantedReplicasChangedV1 } from '@penstock/contract-events';
import type { Projection } from '@penstock/kernel';

/** Decisions that are kept in memory, newest last; all of them are in the log. */
export const DECISIONS_KEPT_MAX = 1_000;

export interface WantedReplicas {
  readonly replicas: number;
  readonly sinceMs: number;
  readonly rule: WantedReplicasChangedV1['rule'];
  readonly reason: string;
  /** What it followed from, and the event itself: placements carry both on. */
  readonly correlationId: string;
  readonly eventId: string;
}

export interface ScalingDecision extends WantedReplicasChangedV1 {
  /** ISO 8601 in UTC. */
  readonly decidedAt: string;
}

export interface ScalingState {
  /** By endpoint. An endpoint that is missing was never decided on and wants none. */
  readonly wanted: Map<string, WantedReplicas>;
  /** The newest {@link DECISIONS_KEPT_MAX}, oldest first. */
  readonly decisions: ScalingDecision[];
}

interface ScalingSnapshot {
  readonly wanted: readonly (readonly [string, WantedReplicas])[];
  readonly decisions: readonly ScalingDecision[];
}

/** How many replicas each endpoint should have, and why. */
export const scalingProjection: Projection<ScalingState> = {
  name: 'scaling',
  version: 1,
  streams: ['EV_SCALING'],
  initialState: () => ({ wanted: new Map(), decisions: [] }),
  apply(state, recorded) {
    const event = asCatalogueEvent(recorded);
    if (event.type !== 'wanted-replicas.changed.v1') return state;
    const { endpointId, to, rule, reason } = event.data;
    state.wanted.set(endpointId, { replicas: to, sinceMs: Date.parse(recorded.time), rule, reason, correlationId: recorded.correlationId, eventId: recorded.id });
    state.decisions.push({ ...event.data, decidedAt: recorded.time });
    if (state.decisions.length > DECISIONS_KEPT_MAX) state.decisions.shift();
    return state;
  },
  snapshot: (state): ScalingSnapshot => ({ wanted: [...state.wanted], decisions: [...state.decisions] }),
  restore(snapshot) {
    const stored = snapshot as ScalingSnapshot;
    return { wanted: new Map(stored.wanted), decisions: [...stored.decisions] };
  },
};

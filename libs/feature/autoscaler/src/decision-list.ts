import type { ScalingDecisionFilter, ScalingDecisionView, ScalingState } from '@penstock/domain-scaling';

/** Decisions out of the memory, newest first, in the shape of the database's answer. */
export function listDecisions(scaling: ScalingState, filter: ScalingDecisionFilter): ScalingDecisionView[] {
  const matching = scaling.decisions.filter((decision) => filter.endpointId === undefined || decision.endpointId === filter.endpointId);
  return matching.reverse().slice(0, filter.limit);
}

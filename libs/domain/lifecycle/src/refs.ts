import type { AggregateRef } from '@penstock/kernel';

export function nodeRef(nodeId: string): AggregateRef {
  return { context: 'fleet', aggregate: 'node', id: nodeId };
}

export function replicaRef(replicaId: string): AggregateRef {
  return { context: 'fleet', aggregate: 'replica', id: replicaId };
}

/** Where refusals of one endpoint's placements are told. */
export function endpointPlacementRef(endpointId: string): AggregateRef {
  return { context: 'fleet', aggregate: 'endpoint-placement', id: endpointId };
}

/** One ledger for the whole fleet: every placement is appended to it before it happens. */
export const placementLedgerRef: AggregateRef = { context: 'fleet', aggregate: 'placement-ledger', id: 'fleet' };

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

/** The MIG instances of one GPU. */
export function migGeometryRef(acceleratorId: string): AggregateRef {
  return { context: 'fleet', aggregate: 'mig-geometry', id: acceleratorId };
}

/** What one replica measured. */
export function replicaProfileRef(replicaId: string): AggregateRef {
  return { context: 'fleet', aggregate: 'replica-profile', id: replicaId };
}

import type { EventOf, WantedReplicasChangedV1, wantedReplicasChangedV1 } from '@penstock/contract-events';
import { accept, type AggregateRef, type Decider } from '@penstock/kernel';

export function endpointScaleRef(endpointId: string): AggregateRef {
  return { context: 'scaling', aggregate: 'endpoint-scale', id: endpointId };
}

/** Changes the wanted number, provided that it still is `from`: a decision made on older figures is dropped. */
export type EndpointScaleCommand = { readonly kind: 'change' } & WantedReplicasChangedV1;

export type EndpointScaleEvent = EventOf<typeof wantedReplicasChangedV1>;

export interface EndpointScale {
  readonly wanted: number;
}

/** How many replicas an endpoint should have; 0 before anybody decided. */
export const endpointScaleDecider: Decider<EndpointScale, EndpointScaleCommand, EndpointScaleEvent> = {
  initialState: { wanted: 0 },
  decide(command, state) {
    const { kind: _kind, ...data } = command;
    if (state.wanted !== data.from || state.wanted === data.to) return accept();
    return accept({ type: 'wanted-replicas.changed.v1', data });
  },
  evolve: (state, event) => (event.type === 'wanted-replicas.changed.v1' ? { wanted: event.data.to } : state),
};

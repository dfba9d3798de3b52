import type { EventOf, PlacementRefusedV2, placementRefusedV2 } from '@penstock/contract-events';
import { accept, type Decider } from '@penstock/kernel';

/** `repeat` says the refusal again although it reads the same, since a placement succeeded in between. */
export interface RefusePlacement {
  readonly kind: 'refuse';
  readonly refusal: PlacementRefusedV2;
  readonly repeat: boolean;
}

export type EndpointPlacementEvent = EventOf<typeof placementRefusedV2>;

/** Tells why an endpoint has fewer replicas than wanted, once per reason. */
export const endpointPlacementDecider: Decider<PlacementRefusedV2 | null, RefusePlacement, EndpointPlacementEvent> = {
  initialState: null,
  decide(command, last) {
    if (last !== null && !command.repeat && sameRefusal(last, command.refusal)) return accept();
    return accept({ type: 'placement.refused.v2', data: command.refusal });
  },
  evolve: (last, event) => (event.type === 'placement.refused.v2' ? event.data : last),
};

/** Two refusals say the same when code, reason and the wanted number agree; scores of candidates may move. */
export function sameRefusal(one: PlacementRefusedV2, other: PlacementRefusedV2): boolean {
  return one.code === other.code && one.reason === other.reason && one.wantedReplicas === other.wantedReplicas;
}

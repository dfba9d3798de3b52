import type { EventOf, trafficSplitRemovedV1, trafficSplitSetV1, TrafficSplitSetV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';
import { canonical } from './canonical.js';

export type TrafficSplitCommand =
  | { readonly kind: 'set'; readonly data: TrafficSplitSetV1 }
  | { readonly kind: 'remove'; readonly reason: string };

export type TrafficSplitEvent = EventOf<typeof trafficSplitSetV1> | EventOf<typeof trafficSplitRemovedV1>;

export type TrafficSplitLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'removed' }
  | { readonly status: 'set'; readonly data: TrafficSplitSetV1 };

/** The split of one name: set, replaced and removed as often as one likes. The same again changes nothing. */
export const trafficSplitDecider: Decider<TrafficSplitLifecycle, TrafficSplitCommand, TrafficSplitEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    if (command.kind === 'set') {
      return state.status === 'set' && canonical(state.data) === canonical(command.data) ? accept() : accept({ type: 'traffic-split.set.v1', data: command.data });
    }
    if (state.status === 'unknown') return refuse({ code: 'not_found', message: 'There is no traffic split with this id; list the splits to see theirs.', param: 'splitId' });
    return state.status === 'set' ? accept({ type: 'traffic-split.removed.v1', data: { splitId: state.data.splitId, reason: command.reason } }) : accept();
  },
  evolve(state, event) {
    switch (event.type) {
      case 'traffic-split.set.v1':
        return { status: 'set', data: event.data };
      case 'traffic-split.removed.v1':
        return { status: 'removed' };
      default:
        return state;
    }
  },
};

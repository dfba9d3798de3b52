import type { EventOf, NodeJoinedV1, NodeLostV1, nodeJoinedV1, nodeLostV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type NodeCommand =
  /** Says what the machine has; nothing happens while it is up and unchanged. */
  | ({ readonly kind: 'join' } & NodeJoinedV1)
  | { readonly kind: 'lose'; readonly cause: NodeLostV1['cause']; readonly reason: string };

export type NodeEvent = EventOf<typeof nodeJoinedV1> | EventOf<typeof nodeLostV1>;

export type NodeLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'up'; readonly joined: NodeJoinedV1 }
  | { readonly status: 'lost'; readonly joined: NodeJoinedV1; readonly reason: string };

/** A machine of the fleet: unknown, up, lost, and up again when its agent comes back. */
export const nodeDecider: Decider<NodeLifecycle, NodeCommand, NodeEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    if (command.kind === 'join') {
      const { kind: _kind, ...data } = command;
      if (state.status === 'up' && sameNode(state.joined, data)) return accept();
      return accept({ type: 'node.joined.v1', data });
    }
    if (state.status === 'unknown') return refuse({ code: 'not_found', message: 'This node never joined; let its agent join first.' });
    if (state.status === 'lost') return accept();
    return accept({ type: 'node.lost.v1', data: { nodeId: state.joined.nodeId, cause: command.cause, reason: command.reason } });
  },
  evolve(state, event) {
    switch (event.type) {
      case 'node.joined.v1':
        return { status: 'up', joined: event.data };
      case 'node.lost.v1':
        return state.status === 'up' ? { status: 'lost', joined: state.joined, reason: event.data.reason } : state;
      default:
        return state;
    }
  },
};

/** Both bodies say the same; the order of keys does not matter, the order of lists does. */
function sameNode(one: NodeJoinedV1, other: NodeJoinedV1): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

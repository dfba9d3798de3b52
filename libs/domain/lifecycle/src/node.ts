import type {
  EventOf, NodeJoinedV2, NodeLostV1, nodeCordonedV1, nodeDrainRequestedV1, nodeJoinedV2, nodeLostV1, nodeReclaimAnnouncedV1, nodeUncordonedV1,
} from '@penstock/contract-events';
import { accept, refuse, type Decider, type Decision } from '@penstock/kernel';

export type NodeCommand =
  /** Says what the machine has; nothing happens while it is up and unchanged. */
  | ({ readonly kind: 'join' } & NodeJoinedV2)
  | { readonly kind: 'lose'; readonly cause: NodeLostV1['cause']; readonly reason: string }
  | { readonly kind: 'cordon'; readonly reason: string }
  /** Opens the node again, and ends its drain. */
  | { readonly kind: 'uncordon'; readonly reason: string }
  | { readonly kind: 'request-drain'; readonly reason: string }
  /** `reclaimAt`: ISO 8601, when the owner takes the machine back. */
  | { readonly kind: 'announce-reclaim'; readonly reclaimAt: string; readonly reason: string };

export type NodeEvent =
  | EventOf<typeof nodeJoinedV2>
  | EventOf<typeof nodeLostV1>
  | EventOf<typeof nodeCordonedV1>
  | EventOf<typeof nodeUncordonedV1>
  | EventOf<typeof nodeDrainRequestedV1>
  | EventOf<typeof nodeReclaimAnnouncedV1>;

/** What operators and owners want of a node, beside whether it is up. It outlives a loss, except for a reclaim, which is over then. */
export interface NodeOperations {
  /** Why it takes nothing new; null while it is open. */
  readonly cordonReason: string | null;
  /** Why it is to become empty; null while it is not. */
  readonly drainReason: string | null;
  /** When its owner takes it back, ISO 8601; null while nothing was announced. */
  readonly reclaimAt: string | null;
}

export const NO_OPERATIONS: NodeOperations = { cordonReason: null, drainReason: null, reclaimAt: null };

export type NodeLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'up'; readonly joined: NodeJoinedV2; readonly operations: NodeOperations }
  | { readonly status: 'lost'; readonly joined: NodeJoinedV2; readonly reason: string; readonly operations: NodeOperations };

/** A machine of the fleet: unknown, up, lost, and up again when its agent comes back; open, cordoned or drained meanwhile. */
export const nodeDecider: Decider<NodeLifecycle, NodeCommand, NodeEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    if (command.kind === 'join') {
      const { kind: _kind, ...data } = command;
      if (state.status === 'up' && sameNode(state.joined, data)) return accept();
      return accept({ type: 'node.joined.v2', data });
    }
    if (state.status === 'unknown') return refuse({ code: 'not_found', message: 'This node never joined; let its agent join first.', param: 'nodeId' });
    if (command.kind === 'lose') {
      return state.status === 'lost' ? accept() : accept({ type: 'node.lost.v1', data: { nodeId: state.joined.nodeId, cause: command.cause, reason: command.reason } });
    }
    return operate(command, state.joined.nodeId, state.operations);
  },
  evolve(state, event) {
    if (event.type === 'node.joined.v2') return { status: 'up', joined: event.data, operations: operationsAfterJoin(state) };
    if (state.status === 'unknown') return state;
    if (event.type !== 'node.lost.v1') return { ...state, operations: evolveOperations(state.operations, event) };
    return state.status === 'up' ? { status: 'lost', joined: state.joined, reason: event.data.reason, operations: evolveOperations(state.operations, event) } : state;
  },
};

function operate(command: Exclude<NodeCommand, { kind: 'join' | 'lose' }>, nodeId: string, operations: NodeOperations): Decision<NodeEvent> {
  const { reason } = command;
  switch (command.kind) {
    case 'cordon':
      return operations.cordonReason !== null ? accept() : accept({ type: 'node.cordoned.v1', data: { nodeId, reason } });
    case 'uncordon':
      return operations.cordonReason === null && operations.drainReason === null ? accept() : accept({ type: 'node.uncordoned.v1', data: { nodeId, reason } });
    case 'request-drain':
      return operations.drainReason !== null ? accept() : accept({ type: 'node.drain-requested.v1', data: { nodeId, reason } });
    case 'announce-reclaim':
      return operations.reclaimAt === command.reclaimAt ? accept() : accept({ type: 'node.reclaim-announced.v1', data: { nodeId, reclaimAt: command.reclaimAt, reason } });
  }
}

/** The one rule of how operations change, for the decider and for the projections. Total. */
export function evolveOperations(operations: NodeOperations, event: NodeEvent): NodeOperations {
  switch (event.type) {
    case 'node.cordoned.v1':
      return { ...operations, cordonReason: event.data.reason };
    case 'node.uncordoned.v1':
      return { ...operations, cordonReason: null, drainReason: null };
    case 'node.drain-requested.v1':
      return { ...operations, cordonReason: operations.cordonReason ?? event.data.reason, drainReason: event.data.reason };
    case 'node.reclaim-announced.v1':
      return { ...operations, reclaimAt: event.data.reclaimAt };
    case 'node.lost.v1':
      return { ...operations, reclaimAt: null };
    default:
      return operations;
  }
}

function operationsAfterJoin(state: NodeLifecycle): NodeOperations {
  return state.status === 'unknown' ? NO_OPERATIONS : state.operations;
}

/** Both bodies say the same; the order of keys does not matter, the order of lists does. */
function sameNode(one: NodeJoinedV2, other: NodeJoinedV2): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

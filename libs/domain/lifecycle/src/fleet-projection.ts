import { asCatalogueEvent, type NodeJoinedV1, type PlacementDecidedV1, type PlacementRefusedV1 } from '@penstock/contract-events';
import type { Projection, RecordedEvent } from '@penstock/kernel';
import type { FleetState, NodeState, ReplicaState } from './fleet-state.js';
import { evolveReplica, type ReplicaEvent } from './replica-facts.js';
import { isEnded } from './replica-phase.js';

/** Ended replicas beyond this many are forgotten, oldest first; the log keeps them. */
export const ENDED_REPLICAS_MAX = 1_000;

/** Lost nodes beyond this many are forgotten, oldest first. */
export const LOST_NODES_MAX = 1_000;

interface FleetSnapshot {
  readonly nodes: readonly NodeState[];
  readonly replicas: readonly ReplicaState[];
  readonly endedReplicaIds: readonly string[];
  readonly ledgerSequence: number;
  readonly pending: readonly PlacementDecidedV1[];
  readonly refusals: readonly PlacementRefusedV1[];
}

/** Nodes, replicas and the placement ledger, in memory. */
export const fleetProjection: Projection<FleetState> = {
  name: 'fleet',
  version: 1,
  streams: ['EV_FLEET'],
  initialState: () => ({ nodes: new Map(), replicas: new Map(), endedReplicaIds: [], ledger: { lastSequence: 0, pending: new Map() }, refusals: new Map() }),
  apply,
  snapshot: (state): FleetSnapshot => ({
    nodes: [...state.nodes.values()],
    replicas: [...state.replicas.values()],
    endedReplicaIds: [...state.endedReplicaIds],
    ledgerSequence: state.ledger.lastSequence,
    pending: [...state.ledger.pending.values()],
    refusals: [...state.refusals.values()],
  }),
  restore(snapshot) {
    const stored = snapshot as FleetSnapshot;
    return {
      nodes: new Map(stored.nodes.map((node) => [node.nodeId, node])),
      replicas: new Map(stored.replicas.map((replica) => [replica.replicaId, replica])),
      endedReplicaIds: [...stored.endedReplicaIds],
      ledger: { lastSequence: stored.ledgerSequence, pending: new Map(stored.pending.map((entry) => [entry.replicaId, entry])) },
      refusals: new Map(stored.refusals.map((refusal) => [refusal.endpointId, refusal])),
    };
  },
};

function apply(state: FleetState, recorded: RecordedEvent): FleetState {
  const event = asCatalogueEvent(recorded);
  const atMs = Date.parse(recorded.time);
  switch (event.type) {
    case 'node.joined.v1':
      joinNode(state, event.data, atMs);
      return state;
    case 'node.lost.v1':
      loseNode(state, event.data.nodeId, event.data.reason);
      return state;
    case 'placement.decided.v1':
      state.ledger.lastSequence = recorded.sequence;
      if (!state.replicas.has(event.data.replicaId)) state.ledger.pending.set(event.data.replicaId, event.data);
      return state;
    case 'placement.refused.v1':
      state.refusals.set(event.data.endpointId, event.data);
      return state;
    case 'replica.placed.v1':
      state.ledger.pending.delete(event.data.replicaId);
      state.refusals.delete(event.data.endpointId);
      applyToReplica(state, event, atMs);
      return state;
    case 'replica.advanced.v1':
    case 'replica.ready.v1':
    case 'replica.drain-started.v1':
    case 'replica.stopped.v1':
    case 'replica.failed.v1':
      applyToReplica(state, event, atMs);
      return state;
    default:
      return state;
  }
}

function joinNode(state: FleetState, joined: NodeJoinedV1, atMs: number): void {
  state.nodes.set(joined.nodeId, { ...joined, status: 'up', statusReason: null, joinedAtMs: atMs });
}

function loseNode(state: FleetState, nodeId: string, reason: string): void {
  const node = state.nodes.get(nodeId);
  if (node === undefined || node.status === 'lost') return;
  // A lost node moves to the end of the map, so that the first lost one is the one lost longest.
  state.nodes.delete(nodeId);
  state.nodes.set(nodeId, { ...node, status: 'lost', statusReason: reason });
  const lost = [...state.nodes.values()].filter((candidate) => candidate.status === 'lost');
  for (const oldest of lost.slice(0, Math.max(0, lost.length - LOST_NODES_MAX))) state.nodes.delete(oldest.nodeId);
}

function applyToReplica(state: FleetState, event: ReplicaEvent, atMs: number): void {
  const before = state.replicas.get(event.data.replicaId) ?? null;
  const after = evolveReplica<ReplicaState>(before, event, (placed) => ({ ...placed, placedAtMs: atMs, phaseSinceMs: atMs, readyAtMs: null }));
  if (after === null || after === before) return;
  const phaseSinceMs = after.phase === before?.phase ? before.phaseSinceMs : atMs;
  const readyAtMs = after.readyAtMs ?? (after.phase === 'ready' ? atMs : null);
  state.replicas.set(after.replicaId, { ...after, phaseSinceMs, readyAtMs });
  if (!isEnded(after.phase)) return;
  state.endedReplicaIds.push(after.replicaId);
  while (state.endedReplicaIds.length > ENDED_REPLICAS_MAX) state.replicas.delete(state.endedReplicaIds.shift() as string);
}

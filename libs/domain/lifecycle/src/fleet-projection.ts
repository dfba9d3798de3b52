import { asCatalogueEvent, type NodeJoinedV2, type PlacementDecidedV2, type PlacementRefusedV2, type ReplicaProfileMeasuredV1 } from '@penstock/contract-events';
import type { Projection, RecordedEvent } from '@penstock/kernel';
import type { FleetState, NodeState, ReplicaState } from './fleet-state.js';
import { evolveMigGeometry, type MigEvent, type MigGeometryState } from './mig-geometry.js';
import { evolveOperations, NO_OPERATIONS, type NodeEvent } from './node.js';
import { improveKnown, profileKey, type KnownProfile } from './replica-profile.js';
import { evolveReplica, type ReplicaEvent } from './replica-facts.js';
import { isEnded } from './replica-phase.js';

/** Ended replicas beyond this many are forgotten, oldest first; the log keeps them. */
export const ENDED_REPLICAS_MAX = 1_000;

/** Measured profiles beyond this many are forgotten, the one said longest ago first. */
export const PROFILES_MAX = 20_000;

/** Lost nodes beyond this many are forgotten, oldest first. */
export const LOST_NODES_MAX = 1_000;

interface FleetSnapshot {
  readonly nodes: readonly NodeState[];
  readonly replicas: readonly ReplicaState[];
  readonly endedReplicaIds: readonly string[];
  readonly ledgerSequence: number;
  readonly pending: readonly PlacementDecidedV2[];
  readonly refusals: readonly PlacementRefusedV2[];
  readonly geometries: readonly MigGeometryState[];
  readonly profiles: readonly KnownProfile[];
}

/** Nodes, replicas and the placement ledger, in memory. */
export const fleetProjection: Projection<FleetState> = {
  name: 'fleet',
  version: 3,
  streams: ['EV_FLEET'],
  initialState: () => ({ nodes: new Map(), replicas: new Map(), endedReplicaIds: [], ledger: { lastSequence: 0, pending: new Map() }, refusals: new Map(), geometries: new Map(), profiles: new Map() }),
  apply,
  snapshot: (state): FleetSnapshot => ({
    nodes: [...state.nodes.values()],
    replicas: [...state.replicas.values()],
    endedReplicaIds: [...state.endedReplicaIds],
    ledgerSequence: state.ledger.lastSequence,
    pending: [...state.ledger.pending.values()],
    refusals: [...state.refusals.values()],
    geometries: [...state.geometries.values()],
    profiles: [...state.profiles.values()],
  }),
  restore(snapshot) {
    const stored = snapshot as FleetSnapshot;
    return {
      nodes: new Map(stored.nodes.map((node) => [node.nodeId, node])),
      replicas: new Map(stored.replicas.map((replica) => [replica.replicaId, replica])),
      endedReplicaIds: [...stored.endedReplicaIds],
      ledger: { lastSequence: stored.ledgerSequence, pending: new Map(stored.pending.map((entry) => [entry.replicaId, entry])) },
      refusals: new Map(stored.refusals.map((refusal) => [refusal.endpointId, refusal])),
      geometries: new Map(stored.geometries.map((geometry) => [geometry.acceleratorId, geometry])),
      profiles: new Map(stored.profiles.map((profile) => [profileKey(profile), profile])),
    };
  },
};

function apply(state: FleetState, recorded: RecordedEvent): FleetState {
  const event = asCatalogueEvent(recorded);
  const atMs = Date.parse(recorded.time);
  switch (event.type) {
    case 'node.joined.v2':
      joinNode(state, event.data, atMs);
      return state;
    case 'node.lost.v1':
      operateNode(state, event);
      loseNode(state, event.data.nodeId, event.data.reason);
      return state;
    case 'node.cordoned.v1':
    case 'node.uncordoned.v1':
    case 'node.drain-requested.v1':
    case 'node.reclaim-announced.v1':
      operateNode(state, event);
      return state;
    case 'mig.change-planned.v1':
    case 'mig.instance-created.v1':
    case 'mig.instance-destroyed.v1':
    case 'mig.change-ended.v1':
      applyToGeometry(state, event);
      return state;
    case 'replica-profile.measured.v1':
      keepProfile(state, event.data);
      return state;
    case 'placement.decided.v2':
      state.ledger.lastSequence = recorded.sequence;
      if (!state.replicas.has(event.data.replicaId)) state.ledger.pending.set(event.data.replicaId, event.data);
      return state;
    case 'placement.refused.v2':
      state.refusals.set(event.data.endpointId, event.data);
      return state;
    case 'replica.placed.v2':
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

function joinNode(state: FleetState, joined: NodeJoinedV2, atMs: number): void {
  const { cordonReason, drainReason, reclaimAt } = state.nodes.get(joined.nodeId) ?? NO_OPERATIONS;
  state.nodes.set(joined.nodeId, { ...joined, cordonReason, drainReason, reclaimAt, status: 'up', statusReason: null, joinedAtMs: atMs });
  for (const { acceleratorId, mig } of joined.accelerators) {
    const known = state.geometries.get(acceleratorId);
    // What the node reports is how it is now; a change under way goes on from there.
    if (mig?.isEnabled === true) state.geometries.set(acceleratorId, { nodeId: joined.nodeId, acceleratorId, change: null, lastEnd: null, ...known, instances: mig.instances });
    else if (known !== undefined) state.geometries.delete(acceleratorId);
  }
}

function operateNode(state: FleetState, event: NodeEvent): void {
  const node = state.nodes.get(event.data.nodeId);
  if (node !== undefined) state.nodes.set(node.nodeId, { ...node, ...evolveOperations(node, event) });
}

function applyToGeometry(state: FleetState, event: MigEvent): void {
  const { acceleratorId } = event.data;
  state.geometries.set(acceleratorId, evolveMigGeometry(state.geometries.get(acceleratorId) ?? null, event));
}

function keepProfile(state: FleetState, measured: ReplicaProfileMeasuredV1): void {
  const key = profileKey(measured);
  const known = state.profiles.get(key);
  state.profiles.delete(key);
  state.profiles.set(key, improveKnown(known, measured));
  const [oldest] = state.profiles.keys();
  if (state.profiles.size > PROFILES_MAX && oldest !== undefined) state.profiles.delete(oldest);
}

function loseNode(state: FleetState, nodeId: string, reason: string): void {
  const node = state.nodes.get(nodeId);
  if (node === undefined || node.status === 'lost') return;
  // A lost node moves to the end of the map, so that the first lost one is the one lost longest.
  state.nodes.delete(nodeId);
  state.nodes.set(nodeId, { ...node, status: 'lost', statusReason: reason });
  const lost = [...state.nodes.values()].filter((candidate) => candidate.status === 'lost');
  for (const oldest of lost.slice(0, Math.max(0, lost.length - LOST_NODES_MAX))) forgetNode(state, oldest);
}

function forgetNode(state: FleetState, node: NodeState): void {
  state.nodes.delete(node.nodeId);
  for (const { acceleratorId } of node.accelerators) state.geometries.delete(acceleratorId);
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

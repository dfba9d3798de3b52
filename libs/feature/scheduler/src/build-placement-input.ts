import type { PlacementRules } from '@penstock/contract-events';
import { replicaMemoryBytes, type CatalogState, type EndpointState, type ModelVersionState } from '@penstock/domain-catalog';
import { isEnded, isExclusiveDevice, isLiving, type FleetState, type NodeState, type ReplicaState } from '@penstock/domain-lifecycle';
import { assessFailures, countOf, floorsAt, gpuTypeLike, NO_RULES, TIER_PRIORITIES, TIER_WEIGHTS, tierOf, type CommitmentBook, type EndpointFloor, type EndpointStanding, type Holding, type PendingReplica, type PlacementDemand, type PlacementInput, type PlacementNode, type PromisedHardware, type StartAttempt, type TenantTiers } from '@penstock/domain-placement';
import type { ScalingState } from '@penstock/domain-scaling';
import { requiredType } from './exact-hardware.js';

export interface PlanningState {
  readonly fleet: FleetState;
  readonly catalog: CatalogState;
  readonly scaling: ScalingState;
  readonly book: CommitmentBook;
  readonly tiers: TenantTiers;
  readonly nowMs: number;
  /** Requests a replica works on; null where unknown. */
  readonly runningOn: (replicaId: string) => number | null;
}

const MILLI_PER_CORE = 1_000;

/** Placements of one run; the next run goes on. It bounds one append to the ledger. */
export const PLACEMENTS_PER_RUN_MAX = 100;

/** Puts together what the planner needs. Pure. */
export function buildPlacementInput(state: PlanningState): PlacementInput {
  const { fleet, nowMs } = state;
  const replicas = Map.groupBy(fleet.replicas.values(), (replica) => replica.endpointId);
  const pending = Map.groupBy(fleet.ledger.pending.values(), (entry) => entry.endpointId);
  const warm = warmNodes(fleet);
  const floors = floorsAt(state.book, nowMs);
  const standings = new Map<string, EndpointStanding>();
  const demands: PlacementDemand[] = [];
  for (const endpoint of state.catalog.endpoints.values()) {
    const demand = buildDemand(endpoint, {
      replicas: replicas.get(endpoint.endpointId) ?? [],
      pending: (pending.get(endpoint.endpointId) ?? []).map(({ replicaId, members, replaces }) => ({ replicaId, nodeIds: members.map((member) => member.nodeId), replaces })),
      warmNodeIds: warm.get(endpoint.modelVersionId) ?? new Set(),
      floor: floors.get(endpoint.endpointId),
    }, state);
    if (demand === undefined) continue;
    demands.push(demand);
    standings.set(endpoint.endpointId, standingOf(endpoint, floors.get(endpoint.endpointId), state.tiers));
  }
  return { nodes: nodesUp(state), holdings: holdingsOf(fleet), demands, standings, nowMs, typicalStartMs: typicalStartMs(fleet), placementsMax: PLACEMENTS_PER_RUN_MAX };
}

/** A start is expected to take this long as long as none was seen. */
const START_MS_ASSUMED = 120_000;

/** The median of the starts that are remembered. */
function typicalStartMs({ replicas }: FleetState): number {
  const starts = [...replicas.values()].flatMap(({ readyAtMs, placedAtMs }) => (readyAtMs === null ? [] : [readyAtMs - placedAtMs])).sort((one, other) => one - other);
  return starts[Math.floor(starts.length / 2)] ?? START_MS_ASSUMED;
}

/** Everything that is held, by replicas that did not end and by placements that did not become replicas yet. */
export function holdingsOf(fleet: FleetState): readonly Holding[] {
  const living = [...fleet.replicas.values()].filter((replica) => isLiving(replica.phase));
  return [...living.map((replica) => ({ ...replica, isLeaving: replica.phase === 'draining' })), ...fleet.ledger.pending.values()];
}

/** Nodes that are up, as the planner takes them. */
export function nodesUp({ fleet, nowMs }: Pick<PlanningState, 'fleet' | 'nowMs'>): readonly PlacementNode[] {
  return [...fleet.nodes.values()].filter((node) => node.status === 'up').map((node) => toPlacementNode(node, fleet, nowMs));
}

/** A node that is still up so long after its owner was to take it back was not taken: the announcement is void. */
const RECLAIM_OVERDUE_MS = 60_000;

function toPlacementNode(node: NodeState, { geometries }: FleetState, nowMs: number): PlacementNode {
  const { nodeId, hostname, engines, cpuCores, memoryBytes, failureDomain, taints, market, price, cordonReason, drainReason, reclaimAt } = node;
  return {
    nodeId, hostname, engines, failureDomain, taints, market, cordonReason, drainReason,
    cpuMilli: cpuCores * MILLI_PER_CORE,
    hostMemoryBytes: memoryBytes,
    dollarsPerGpuHour: price?.dollarsPerGpuHour ?? null,
    reclaimAtMs: reclaimAt === null || nowMs > Date.parse(reclaimAt) + RECLAIM_OVERDUE_MS ? null : Date.parse(reclaimAt),
    accelerators: node.accelerators.map(({ acceleratorId, type, usableBytes, islandId, device, mig }) => ({
      acceleratorId, type, usableBytes, islandId,
      isExclusive: isExclusiveDevice(device),
      migInstances: mig?.isEnabled === true ? (geometries.get(acceleratorId)?.instances ?? mig.instances) : null,
    })),
  };
}

/** Endpoints for everybody share as one tenant. */
function standingOf({ organisationId }: EndpointState, floor: EndpointFloor | undefined, tiers: TenantTiers): EndpointStanding {
  const tier = tierOf(tiers, organisationId);
  return { tenantId: organisationId ?? '', weight: TIER_WEIGHTS[tier], priority: TIER_PRIORITIES[tier], floor: floor?.replicas ?? 0, floorPriority: floor?.priority ?? 0 };
}

interface EndpointFleet {
  readonly replicas: readonly ReplicaState[];
  readonly pending: readonly PendingReplica[];
  readonly warmNodeIds: ReadonlySet<string>;
  /** Replicas that were promised, and what each has to have. */
  readonly floor: EndpointFloor | undefined;
}

function buildDemand(endpoint: EndpointState, { replicas, pending, warmNodeIds, floor }: EndpointFleet, state: PlanningState): PlacementDemand | undefined {
  const version = state.catalog.modelVersions.get(endpoint.modelVersionId);
  const serving = replicas.filter((replica) => isLiving(replica.phase) && replica.phase !== 'draining').map((replica) => ({
    replicaId: replica.replicaId,
    nodeIds: replica.members.map((member) => member.nodeId),
    isReady: replica.phase === 'ready',
    placedAtMs: replica.placedAtMs,
    running: state.runningOn(replica.replicaId),
    replaces: replica.replaces,
  }));
  const wanted = wantedOf(endpoint, version, state, countOf({ replicas: serving, pending }), floor?.replicas ?? 0);
  if (wanted.replicas === 0 && serving.length === 0) return undefined;
  const { backoff, failuresByNode } = assessFailures(replicas.map(toAttempt), state.nowMs);
  return {
    endpointId: endpoint.endpointId,
    modelVersionId: endpoint.modelVersionId,
    engine: endpoint.engine,
    acceleratorType: requiredType(endpoint, state.fleet) ?? reportedType(floor?.hardware ?? null, state.fleet),
    acceleratorCount: endpoint.hardware.acceleratorCount,
    memoryBytes: memoryOf(endpoint, version),
    precision: version?.registered?.precision ?? null,
    profileHoles: holesOf(version),
    rules: promisedRules(endpoint.rules ?? NO_RULES, floor?.hardware ?? null),
    priority: 0,
    wanted: wanted.replicas,
    replicas: serving,
    pending,
    warmNodeIds,
    failuresByNode,
    backoff,
    drainReason: wanted.reason,
  };
}

/** What nodes call the hardware that a promise rests on; null where nothing was promised of it. */
function reportedType(promised: PromisedHardware | null, { nodes }: FleetState): string | null {
  if (promised === null) return null;
  for (const { accelerators } of nodes.values()) for (const { type, usableBytes } of accelerators) if ((gpuTypeLike(type, usableBytes)?.type ?? type) === promised.gpuType) return type;
  return null;
}

/** A replica that was promised a rate has the compute that the rate needs to itself. What the endpoint says itself stands. */
function promisedRules(rules: PlacementRules, promised: PromisedHardware | null): PlacementRules {
  return promised === null ? rules : { ...rules, computeMilli: rules.computeMilli ?? (promised.migProfile === null && promised.computeMilli > 0 ? promised.computeMilli : null), migProfile: rules.migProfile ?? promised.migProfile };
}

/** Files with weights whose header gave no size: nothing can be planned on them. */
function holesOf(version: ModelVersionState | undefined): readonly string[] {
  const registered = version?.registered ?? null;
  if (registered === null || registered.format === 'none' || registered.source.kind === 'attached') return [];
  return registered.memory.weightBytes > 0 ? [] : ['weightBytes'];
}

/** Where something is not known (yet), what is there stays: nothing is placed, drained or refused. */
function wantedOf(endpoint: EndpointState, version: ModelVersionState | undefined, { scaling, book }: PlanningState, present: number, floor: number): { readonly replicas: number; readonly reason: string } {
  if (endpoint.status === 'retired') return { replicas: 0, reason: 'the endpoint was retired' };
  if (version?.status === 'rejected') return { replicas: 0, reason: `its model version was rejected: ${version.rejection ?? 'no reason is known'}` };
  if (version?.status !== 'registered') return { replicas: present, reason: 'its model version is not registered yet' };
  const wanted = scaling.wanted.get(endpoint.endpointId);
  if (floor > (wanted?.replicas ?? present)) return { replicas: floor, reason: `${floor} are promised` };
  if (wanted !== undefined) return { replicas: wanted.replicas, reason: `${wanted.replicas} wanted (${wanted.rule}): ${wanted.reason}` };
  // Replicas that stood for a promise alone are not left over when it ends.
  const isOver = floor === 0 && book.ended.some(({ level }) => level.endpointId === endpoint.endpointId);
  return isOver ? { replicas: 0, reason: 'what was promised of it is over, and nothing else wants it' } : { replicas: Math.max(floor, present), reason: 'the autoscaler did not decide yet' };
}

/** An engine that somebody else runs takes no memory of ours. */
function memoryOf(endpoint: EndpointState, version: ModelVersionState | undefined): number {
  const registered = version?.registered ?? null;
  return registered === null || registered.source.kind === 'attached' ? 0 : replicaMemoryBytes(registered.memory, endpoint.serving);
}

/** By model version: nodes on which a replica of it got past its pull, so that the artifacts are in their cache. */
function warmNodes(fleet: FleetState): ReadonlyMap<string, ReadonlySet<string>> {
  const warm = new Map<string, Set<string>>();
  for (const { modelVersionId, nodeId, readyAtMs, phase } of fleet.replicas.values()) {
    if (readyAtMs === null && phase !== 'loading' && phase !== 'warming') continue;
    const nodeIds = warm.get(modelVersionId) ?? new Set();
    warm.set(modelVersionId, nodeIds.add(nodeId));
  }
  return warm;
}

function toAttempt(replica: ReplicaState): StartAttempt {
  const failed = replica.phase === 'failed' && replica.failureCode !== 'node_lost';
  return {
    nodeId: replica.nodeId,
    placedAtMs: replica.placedAtMs,
    readyAtMs: replica.readyAtMs,
    endedAtMs: isEnded(replica.phase) ? replica.phaseSinceMs : null,
    failure: failed ? `${replica.failureCode}: ${replica.reason}` : null,
  };
}

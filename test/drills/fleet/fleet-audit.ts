import type { RecordedEvent } from '@penstock/kernel';
import type { AcceleratorBody, InstanceBody, NodeBody, PlacementBody, RefusalBody, ReservationBody } from './audited-bodies.js';
import { CapacityBook } from './capacity-book.js';
import { migProblem } from './mig-rules.js';

type Stage = 'decided' | 'placed' | 'pulling' | 'loading' | 'warming' | 'ready' | 'draining' | 'ended';

interface AuditedNode extends NodeBody {
  isUp: boolean;
  /** Since when it takes nothing new; undefined while it is open. */
  closedAtMs: number | undefined;
  isDraining: boolean;
}

interface AuditedReplica {
  readonly placement: PlacementBody;
  stage: Stage;
}

/** What an endpoint asks for, as the registry was told. */
export interface AuditedDemand {
  readonly type: string | null;
  readonly count: number;
  readonly nodes: number;
  readonly bytesEach: number;
  readonly migProfile: string | null;
  readonly allowsSpot: boolean;
}

interface AuditedEndpoint extends AuditedDemand {
  wanted: number;
  /** Promised replicas by reservation. */
  readonly promised: Map<string, number>;
  isRetired: boolean;
  refusal: RefusalBody | undefined;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
}

const ORDER: readonly Stage[] = ['decided', 'placed', 'pulling', 'loading', 'warming', 'ready', 'draining', 'ended'];
const ENDPOINT_ENGINE = 'vllm';
/** A view of the log may be this old when a placement is decided on it; what a node said before that had to be known. */
const VIEW_AGE_MS_MAX = 10_000;

/** Checks what must hold after every event, and at rest, from the log alone. */
export class FleetAudit {
  readonly violations: Violation[] = [];
  /** Goes up with each event that it has read. */
  events = 0;
  readonly countOf = new Map<string, number>();
  private readonly nodes = new Map<string, AuditedNode>();
  private readonly replicas = new Map<string, AuditedReplica>();
  private readonly endpoints = new Map<string, AuditedEndpoint>();
  private readonly instances = new Map<string, readonly InstanceBody[]>();
  private readonly book = new CapacityBook();

  expect(endpointId: string, demand: AuditedDemand): void {
    this.endpoints.set(endpointId, { ...demand, wanted: 0, promised: new Map(), isRetired: false, refusal: undefined });
  }

  readonly see = (event: RecordedEvent): void => {
    this.events += 1;
    this.countOf.set(event.type, (this.countOf.get(event.type) ?? 0) + 1);
    if (event.type.startsWith('node.')) return this.seeNode(event);
    if (event.type.startsWith('mig.')) return this.seeInstance(event);
    switch (event.type) {
      case 'wanted-replicas.changed.v1': {
        const { endpointId, to } = event.data as { endpointId: string; to: number };
        return this.change(endpointId, { wanted: to });
      }
      case 'endpoint.retired.v1':
        return this.change(event.ref.id, { isRetired: true });
      case 'reservation.made.v1': {
        const { reservationId, level, capacity } = event.data as ReservationBody;
        this.endpoints.get(level.endpointId)?.promised.set(reservationId, capacity.parts.reduce((sum, part) => sum + part.count, 0));
        return;
      }
      case 'reservation.released.v1': {
        const { reservationId, endpointId } = event.data as { reservationId: string; endpointId: string };
        this.endpoints.get(endpointId)?.promised.delete(reservationId);
        return;
      }
      case 'placement.refused.v2':
        return this.change((event.data as RefusalBody).endpointId, { refusal: event.data as RefusalBody });
      default:
        return this.seeReplica(event);
    }
  };

  /** What an endpoint lacks to be at rest; undefined when every wanted replica is ready, or refused with a true reason. */
  unsettled(): string | undefined {
    const serving = new Map<string, number>();
    for (const [replicaId, { stage, placement }] of this.replicas) {
      if (stage === 'ended') continue;
      if (stage !== 'ready') return `replica ${replicaId} of ${placement.endpointId} is ${stage}`;
      const lost = placement.members.find(({ nodeId }) => this.nodes.get(nodeId)?.isUp !== true);
      if (lost !== undefined) return `replica ${replicaId} is ready on ${lost.nodeId}, which is lost`;
      serving.set(placement.endpointId, (serving.get(placement.endpointId) ?? 0) + 1);
      const drained = placement.members.find(({ nodeId }) => this.nodes.get(nodeId)?.isDraining === true);
      const seat = drained === undefined ? undefined : this.seatFor(this.endpoints.get(placement.endpointId));
      if (seat !== undefined) return `replica ${replicaId} stays on ${drained?.nodeId}, which is to be empty, and fits on ${seat}`;
    }
    for (const [endpointId, endpoint] of this.endpoints) {
      const floor = floorOf(endpoint);
      const wanted = endpoint.isRetired ? 0 : Math.max(endpoint.wanted, floor);
      const have = serving.get(endpointId) ?? 0;
      if (have > wanted) return `${endpointId} has ${have} replicas and ${wanted} are wanted`;
      if (have === wanted) continue;
      if (endpoint.refusal === undefined) return `${endpointId} has ${have} of ${wanted} replicas and no refusal`;
      if (endpoint.refusal.wantedReplicas !== wanted) return `${endpointId} has ${have} of ${wanted} replicas and the refusal speaks of ${endpoint.refusal.wantedReplicas}`;
      const kept = have < floor ? this.seatFor(endpoint, (holder) => floorOf(this.endpoints.get(holder)) > 0) : undefined;
      if (kept !== undefined) return `${endpointId} has ${have} of ${floor} promised replicas, and fits on ${kept} without what was not promised`;
      const seat = this.seatFor(endpoint);
      if (seat !== undefined) return `${endpointId} has ${have} of ${wanted} replicas, was refused (${endpoint.refusal.code}: ${endpoint.refusal.reason}), and fits on ${seat}`;
    }
    return undefined;
  }

  /** Replicas that the log says live, by id. */
  living(): readonly string[] {
    return [...this.replicas].filter(([, { stage }]) => stage !== 'ended').map(([replicaId]) => replicaId);
  }

  private seeNode(event: RecordedEvent): void {
    const body = event.data as NodeBody;
    const known = this.nodes.get(body.nodeId);
    if (event.type === 'node.joined.v2') {
      this.nodes.set(body.nodeId, { ...body, isUp: true, closedAtMs: known?.closedAtMs, isDraining: known?.isDraining ?? false });
      for (const { acceleratorId, type, mig } of body.accelerators) this.layOut(acceleratorId, type, mig?.instances ?? []);
      return;
    }
    if (known === undefined) return this.report('node order', `${event.type} of ${body.nodeId}, which never joined`);
    switch (event.type) {
      case 'node.lost.v1': return void (known.isUp = false);
      case 'node.uncordoned.v1': return void Object.assign(known, { closedAtMs: undefined, isDraining: false });
      case 'node.drain-requested.v1': return void Object.assign(known, { closedAtMs: known.closedAtMs ?? Date.parse(event.time), isDraining: true });
      case 'node.cordoned.v1': return void (known.closedAtMs ??= Date.parse(event.time));
    }
  }

  private seeInstance(event: RecordedEvent): void {
    const { nodeId, acceleratorId, profile, start } = event.data as { nodeId: string; acceleratorId: string } & InstanceBody;
    const type = this.acceleratorOf(nodeId, acceleratorId)?.type ?? '';
    const others = (this.instances.get(acceleratorId) ?? []).filter((one) => one.profile !== profile || one.start !== start);
    if (event.type === 'mig.instance-created.v1') return this.layOut(acceleratorId, type, [...others, { profile, start }]);
    if (event.type !== 'mig.instance-destroyed.v1') return;
    this.layOut(acceleratorId, type, others);
    const holder = this.book.holderOf(nodeId, acceleratorId, { profile, start });
    if (holder !== undefined) this.report('no slice twice', `${profile}@${start} of ${acceleratorId} was destroyed under ${holder}`);
  }

  private layOut(acceleratorId: string, type: string, instances: readonly InstanceBody[]): void {
    this.instances.set(acceleratorId, instances);
    const problem = instances.length === 0 ? undefined : migProblem(type, instances);
    if (problem !== undefined) this.report('legal MIG layout', `${acceleratorId}: ${problem}`);
  }

  private seeReplica(event: RecordedEvent): void {
    const body = event.data as PlacementBody & { phase?: Stage };
    if (event.type === 'placement.decided.v2') return this.decide(body, Date.parse(event.time));
    const next = stageAfter(event.type, body.phase);
    if (next === undefined) return;
    const replica = this.replicas.get(body.replicaId);
    if (replica === undefined) return this.report('ledger first', `${event.type} of ${body.replicaId}, which no ledger entry names`);
    if (next === 'placed' && !isSamePlacement(replica.placement, body)) this.report('as decided', `${body.replicaId} was placed otherwise than the ledger says`);
    if (replica.stage === 'ended') return this.report('ended is final', `${event.type} of ${body.replicaId} after its end`);
    if (ORDER.indexOf(next) <= ORDER.indexOf(replica.stage)) this.report('phases go on', `${body.replicaId} went from ${replica.stage} to ${next}`);
    if (replica.stage === 'decided' && next !== 'placed') this.report('phases go on', `${body.replicaId} is ${next} and was never placed`);
    replica.stage = next;
    if (next === 'placed') this.change(replica.placement.endpointId, { refusal: undefined });
    if (next === 'ended') this.book.release(replica.placement);
  }

  private decide(placement: PlacementBody, atMs: number): void {
    const { replicaId, endpointId, members } = placement;
    if (this.replicas.has(replicaId)) this.report('one decision', `${replicaId} was decided twice`);
    this.replicas.set(replicaId, { placement, stage: 'decided' });
    for (const problem of this.book.take(placement, this.nodes)) this.report('no slice or byte twice', problem);
    const demand = this.endpoints.get(endpointId);
    if (demand === undefined) return this.report('known endpoint', `${replicaId} is for ${endpointId}, which nobody deployed`);
    for (const problem of gangProblems(placement, demand)) this.report('gang whole', problem);
    for (const { nodeId, acceleratorIds } of members) this.checkSeat(placement, demand, nodeId, acceleratorIds, atMs);
  }

  private checkSeat({ replicaId }: PlacementBody, demand: AuditedDemand, nodeId: string, acceleratorIds: readonly string[], atMs: number): void {
    const node = this.nodes.get(nodeId);
    const seats = acceleratorIds.flatMap((id) => this.acceleratorOf(nodeId, id) ?? []);
    const wrong = seats.find((seat) => demand.type !== null && seat.type !== demand.type);
    if (wrong !== undefined) this.report('right accelerator', `${replicaId} was given ${wrong.type} and wants ${demand.type}`);
    const islands = new Set(seats.map((seat) => seat.islandId));
    if (seats.length > 1 && islands.size > 1) this.report('gang in one island', `${replicaId} is spread over ${[...islands].join(', ')} of ${nodeId}`);
    if (node?.closedAtMs !== undefined && atMs - node.closedAtMs > VIEW_AGE_MS_MAX) this.report('closed nodes stay closed', `${replicaId} was given ${nodeId}, closed ${atMs - node.closedAtMs} ms before`);
    if (node?.market === 'spot' && !demand.allowsSpot) this.report('spot only where allowed', `${replicaId} was given ${nodeId}`);
    if (node !== undefined && node.taints.length > 0) this.report('taints keep away', `${replicaId} was given ${nodeId}`);
  }

  /** A node on which one more replica would fit now, by the simplest rules. Where they do not decide, none is claimed. */
  private seatFor(endpoint: AuditedEndpoint | undefined, counts: (holderEndpointId: string) => boolean = () => true): string | undefined {
    if (endpoint === undefined || endpoint.nodes > 1) return undefined;
    const { type, count, bytesEach, allowsSpot, migProfile } = endpoint;
    for (const node of this.nodes.values()) {
      if (!node.isUp || node.closedAtMs !== undefined || node.taints.length > 0 || (node.market === 'spot' && !allowsSpot) || !this.book.hostHasRoom(node)) continue;
      if (!node.engines.some((engine) => engine.kind === ENDPOINT_ENGINE)) continue;
      if (migProfile !== null) {
        if (node.accelerators.some((one) => one.type === type && one.mig?.isEnabled === true && this.book.hasSlices(node.nodeId, one, migProfile, bytesEach, counts))) return node.nodeId;
        continue;
      }
      const fitting = node.accelerators.filter((one) => (type === null || one.type === type) && one.mig?.isEnabled !== true && this.book.hasRoom(node.nodeId, one, bytesEach, counts));
      if (count === 1 && fitting.length > 0) return node.nodeId;
      const islands = Map.groupBy(fitting.filter((one) => one.islandId !== null && this.book.isEmpty(node.nodeId, one.acceleratorId, counts)), (one) => one.islandId);
      if ([...islands.values()].some((island) => island.length >= count)) return node.nodeId;
    }
    return undefined;
  }

  private acceleratorOf(nodeId: string, acceleratorId: string): AcceleratorBody | undefined {
    return this.nodes.get(nodeId)?.accelerators.find((one) => one.acceleratorId === acceleratorId);
  }

  private change(endpointId: string, change: Partial<AuditedEndpoint>): void {
    const endpoint = this.endpoints.get(endpointId);
    if (endpoint !== undefined) Object.assign(endpoint, change);
  }

  private report(rule: string, detail: string): void {
    this.violations.push({ rule, detail });
  }
}

function floorOf(endpoint: AuditedEndpoint | undefined): number {
  return endpoint === undefined || endpoint.isRetired ? 0 : [...endpoint.promised.values()].reduce((sum, replicas) => sum + replicas, 0);
}

function gangProblems({ replicaId, members, reservedBytes, mig }: PlacementBody, demand: AuditedDemand): readonly string[] {
  const problems: string[] = [];
  const ids = members.flatMap((member) => member.acceleratorIds);
  if (members.length !== demand.nodes || members.some((member) => member.acceleratorIds.length !== demand.count)) problems.push(`${replicaId} got ${members.map((member) => member.acceleratorIds.length).join(' + ')} accelerators, ${demand.count} on each of ${demand.nodes} nodes are wanted`);
  if (new Set(ids).size !== ids.length || new Set(members.map((member) => member.nodeId)).size !== members.length) problems.push(`${replicaId} was given one part twice`);
  if (reservedBytes < demand.bytesEach * ids.length) problems.push(`${replicaId} got ${reservedBytes} bytes, ${demand.bytesEach} on each of ${ids.length} accelerators are wanted`);
  // Who names no profile may be given an instance, if it is large enough; the book looks at that.
  if (demand.migProfile !== null && mig?.profile !== demand.migProfile) problems.push(`${replicaId} got ${mig?.profile ?? 'no MIG instance'} and wants ${demand.migProfile ?? 'none'}`);
  return problems;
}

function stageAfter(type: string, phase: Stage | undefined): Stage | undefined {
  switch (type) {
    case 'replica.placed.v2': return 'placed';
    case 'replica.advanced.v1': return phase;
    case 'replica.ready.v1': return 'ready';
    case 'replica.drain-started.v1': return 'draining';
    case 'replica.stopped.v1': case 'replica.failed.v1': return 'ended';
    default: return undefined;
  }
}

function isSamePlacement(one: PlacementBody, other: PlacementBody): boolean {
  return one.endpointId === other.endpointId && one.reservedBytes === other.reservedBytes && JSON.stringify([one.members, one.mig]) === JSON.stringify([other.members, other.mig]);
}

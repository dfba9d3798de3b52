import type { RecordedEvent } from '@penstock/kernel';

/** The parts of event bodies that the audit reads. It has no code of the scheduler's, and reads the log as it stands. */
interface NodeBody {
  readonly nodeId: string;
  readonly accelerators: readonly { readonly acceleratorId: string; readonly type: string; readonly memoryBytes: number; readonly device: string | null }[];
  readonly engines: readonly { readonly kind: string }[];
}

interface PlacementBody {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly nodeId: string;
  readonly acceleratorIds: readonly string[];
  readonly reservedBytes: number;
}

interface RefusalBody {
  readonly endpointId: string;
  readonly wantedReplicas: number;
  readonly code: string;
  readonly reason: string;
}

type Stage = 'decided' | 'placed' | 'pulling' | 'loading' | 'warming' | 'ready' | 'draining' | 'ended';

interface AuditedReplica {
  readonly placement: PlacementBody;
  stage: Stage;
}

interface AuditedEndpoint {
  readonly type: string | null;
  readonly count: number;
  readonly bytesEach: number;
  wanted: number;
  isRetired: boolean;
  refusal: RefusalBody | undefined;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
}

const ORDER: readonly Stage[] = ['decided', 'placed', 'pulling', 'loading', 'warming', 'ready', 'draining', 'ended'];
const ENDPOINT_ENGINE = 'vllm';

/** Checks what must hold after every event, and at rest, from the log alone. */
export class FleetAudit {
  readonly violations: Violation[] = [];
  /** Goes up with each event that it has read. */
  events = 0;
  private readonly nodes = new Map<string, NodeBody & { isUp: boolean }>();
  private readonly replicas = new Map<string, AuditedReplica>();
  private readonly endpoints = new Map<string, AuditedEndpoint>();
  private readonly bytesHeld = new Map<string, number>();

  /** What a registry would know: the demand of an endpoint, given by the run. */
  expect(endpointId: string, demand: Pick<AuditedEndpoint, 'type' | 'count' | 'bytesEach'>): void {
    this.endpoints.set(endpointId, { ...demand, wanted: 0, isRetired: false, refusal: undefined });
  }

  readonly see = (event: RecordedEvent): void => {
    this.events += 1;
    switch (event.type) {
      case 'node.joined.v1':
        this.nodes.set((event.data as NodeBody).nodeId, { ...(event.data as NodeBody), isUp: true });
        return;
      case 'node.lost.v1': {
        const node = this.nodes.get((event.data as NodeBody).nodeId);
        if (node === undefined) this.report('node order', `${event.ref.id} was lost and never joined`);
        else node.isUp = false;
        return;
      }
      case 'wanted-replicas.changed.v1': {
        const { endpointId, to } = event.data as { endpointId: string; to: number };
        this.change(endpointId, { wanted: to });
        return;
      }
      case 'endpoint.retired.v1':
        this.change(event.ref.id, { isRetired: true });
        return;
      case 'placement.refused.v1':
        this.change((event.data as RefusalBody).endpointId, { refusal: event.data as RefusalBody });
        return;
      default:
        this.seeReplica(event);
    }
  };

  /** What an endpoint lacks to be at rest; undefined when every wanted replica is ready, or refused with a true reason. */
  unsettled(): string | undefined {
    const serving = new Map<string, number>();
    for (const [replicaId, { stage, placement }] of this.replicas) {
      if (stage === 'ended') continue;
      if (stage !== 'ready') return `replica ${replicaId} of ${placement.endpointId} is ${stage}`;
      if (this.nodes.get(placement.nodeId)?.isUp !== true) return `replica ${replicaId} is ready on ${placement.nodeId}, which is lost`;
      serving.set(placement.endpointId, (serving.get(placement.endpointId) ?? 0) + 1);
    }
    for (const [endpointId, endpoint] of this.endpoints) {
      const wanted = endpoint.isRetired ? 0 : endpoint.wanted;
      const have = serving.get(endpointId) ?? 0;
      if (have > wanted) return `${endpointId} has ${have} replicas and ${wanted} are wanted`;
      if (have === wanted) continue;
      if (endpoint.refusal === undefined) return `${endpointId} has ${have} of ${wanted} replicas and no refusal`;
      if (endpoint.refusal.wantedReplicas !== wanted) return `${endpointId} has ${have} of ${wanted} replicas and the refusal speaks of ${endpoint.refusal.wantedReplicas}`;
      const seat = this.seatFor(endpoint);
      if (seat !== undefined) return `${endpointId} has ${have} of ${wanted} replicas, was refused (${endpoint.refusal.code}: ${endpoint.refusal.reason}), and fits on ${seat}`;
    }
    return undefined;
  }

  /** Replicas that the log says live, by id. */
  living(): readonly string[] {
    return [...this.replicas].filter(([, { stage }]) => stage !== 'ended').map(([replicaId]) => replicaId);
  }

  private seeReplica(event: RecordedEvent): void {
    const body = event.data as PlacementBody & { phase?: Stage };
    if (event.type === 'placement.decided.v1') return this.decide(body);
    if (!event.type.startsWith('replica.')) return;
    const replica = this.replicas.get(body.replicaId);
    if (replica === undefined) return this.report('ledger first', `${event.type} of ${body.replicaId}, which no ledger entry names`);
    const next = stageAfter(event.type, body.phase);
    if (next === undefined) return;
    if (event.type === 'replica.placed.v1' && !isSamePlacement(replica.placement, body)) this.report('as decided', `${body.replicaId} was placed otherwise than the ledger says`);
    if (replica.stage === 'ended') return this.report('ended is final', `${event.type} of ${body.replicaId} after its end`);
    if (ORDER.indexOf(next) <= ORDER.indexOf(replica.stage)) this.report('phases go on', `${body.replicaId} went from ${replica.stage} to ${next}`);
    if (replica.stage === 'decided' && next !== 'placed') this.report('phases go on', `${body.replicaId} is ${next} and was never placed`);
    replica.stage = next;
    if (next === 'placed') this.change(replica.placement.endpointId, { refusal: undefined });
    if (next === 'ended') this.hold(replica.placement, -1);
  }

  private decide(placement: PlacementBody): void {
    const { replicaId, nodeId, acceleratorIds } = placement;
    if (this.replicas.has(replicaId)) this.report('one decision', `${replicaId} was decided twice`);
    const node = this.nodes.get(nodeId);
    if (node === undefined) this.report('known node', `${replicaId} was given ${nodeId}, which never joined`);
    this.replicas.set(replicaId, { placement, stage: 'decided' });
    this.hold(placement, 1);
    const demand = this.endpoints.get(placement.endpointId);
    if (demand !== undefined && (acceleratorIds.length !== demand.count || placement.reservedBytes < demand.bytesEach * demand.count)) this.report('gang whole', `${replicaId} got ${acceleratorIds.length} accelerators and ${placement.reservedBytes} bytes, ${demand.count} of ${demand.bytesEach} are needed`);
    if (new Set(acceleratorIds).size !== acceleratorIds.length) this.report('gang whole', `${replicaId} was given one accelerator twice`);
    for (const id of acceleratorIds) {
      const accelerator = node?.accelerators.find((one) => one.acceleratorId === id);
      if (accelerator === undefined) this.report('known accelerator', `${replicaId} was given ${id}, which ${nodeId} does not have`);
      else if (demand !== undefined && demand.type !== null && demand.type !== accelerator.type) this.report('right accelerator', `${replicaId} was given ${accelerator.type} and wants ${demand.type}`);
      const held = this.bytesHeld.get(`${nodeId}/${id}`) ?? 0;
      if (accelerator !== undefined && held > accelerator.memoryBytes) this.report('no byte twice', `${id} of ${nodeId} has ${accelerator.memoryBytes} bytes and ${held} are given away, the last to ${replicaId}`);
    }
  }

  private hold({ nodeId, acceleratorIds, reservedBytes }: PlacementBody, sign: 1 | -1): void {
    for (const id of acceleratorIds) {
      const key = `${nodeId}/${id}`;
      this.bytesHeld.set(key, (this.bytesHeld.get(key) ?? 0) + (sign * reservedBytes) / acceleratorIds.length);
    }
  }

  /** A node on which one more replica would fit now, by the simplest rule: enough free accelerators of one type. */
  private seatFor({ type, count, bytesEach }: AuditedEndpoint): string | undefined {
    for (const node of this.nodes.values()) {
      if (!node.isUp || !node.engines.some((engine) => engine.kind === ENDPOINT_ENGINE)) continue;
      const fitting = node.accelerators.filter((one) => (type === null || one.type === type) && one.memoryBytes - (this.bytesHeld.get(`${node.nodeId}/${one.acceleratorId}`) ?? 0) >= bytesEach);
      if ([...Map.groupBy(fitting, (one) => one.type).values()].some((group) => group.length >= count)) return node.nodeId;
    }
    return undefined;
  }

  private change(endpointId: string, change: Partial<AuditedEndpoint>): void {
    const endpoint = this.endpoints.get(endpointId);
    if (endpoint !== undefined) Object.assign(endpoint, change);
  }

  private report(rule: string, detail: string): void {
    this.violations.push({ rule, detail });
  }
}

function stageAfter(type: string, phase: Stage | undefined): Stage | undefined {
  switch (type) {
    case 'replica.placed.v1': return 'placed';
    case 'replica.advanced.v1': return phase;
    case 'replica.ready.v1': return 'ready';
    case 'replica.drain-started.v1': return 'draining';
    case 'replica.stopped.v1': case 'replica.failed.v1': return 'ended';
    default: return undefined;
  }
}

function isSamePlacement(one: PlacementBody, other: PlacementBody): boolean {
  return one.endpointId === other.endpointId && one.nodeId === other.nodeId && one.reservedBytes === other.reservedBytes && one.acceleratorIds.join() === other.acceleratorIds.join();
}

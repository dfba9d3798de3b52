import { nodeHeartbeat } from '@penstock/contract-commands';
import { endpointDeployedV1, modelVersionRegisteredV1, modelVersionSubmittedV1, nodeJoinedV2, replicaReadyV1, type CatalogueEvent, type EndpointDeployedV1, type NodeJoinedV2, type PlacementRules } from '@penstock/contract-events';
import { fleetProjection, isLiving, migGeometryDecider, migGeometryRef, nodeDecider, nodeRef, replicaDecider, replicaRef, stepsLeft, type FleetState, type MigCommand, type MigGeometryState, type ReplicaCommand, type ReplicaState } from '@penstock/domain-lifecycle';
import { NO_RULES } from '@penstock/domain-placement';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';
import { followProjection, handleCommand, silentLogger, type AggregateRef, type Decider, type EventLog, type LiveProjection, type NewEvent, type Projection } from '@penstock/kernel';
import { FixedClock, LocalCommandClient, localCommandTransport, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds } from '@penstock/testing-kit';
import { schedulerConfig } from './config.js';
import type { SchedulerPorts } from './ports.js';
import { startScheduler } from './start-scheduler.js';

const STEP_MS = 50;

/** Events of one append settle within this many turns of the event loop. */
const TURNS = 4;

/** A fleet in memory for the tests of those who schedule and scale it: time passes only in `run`. */
export class FleetWorld {
  readonly clock = new FixedClock();
  readonly timers = new ManualTimers(this.clock);
  readonly log = new MemoryEventLog();
  readonly ids = new SequentialIds();
  readonly commands = new LocalCommandClient();
  /** One for each part of a network that may be cut; agents speak on all of them. */
  readonly networks: MemorySignals[] = [new MemorySignals()];
  readonly closers: (() => Promise<void>)[] = [];

  ports(signals = this.networks[0] as MemorySignals, log: EventLog = this.log): ServicePorts & ProjectionPorts {
    const { clock, timers, ids, commands } = this;
    return {
      clock, timers, ids, commands, log, signals, projections: [], logger: silentLogger,
      follow: <State>(projection: Projection<State>) => followProjection(this.log, projection),
      commandTransport: localCommandTransport(commands),
    };
  }

  /** A scheduler of this fleet, which ends with it. */
  async scheduler(overrides: Partial<SchedulerPorts> = {}, environment: Readonly<Record<string, string>> = {}): ReturnType<typeof startScheduler> {
    const service = await startScheduler(schedulerConfig.parse(environment), { ...this.ports(), ...overrides });
    this.closers.push(() => service.close());
    return service;
  }

  publish(subject: string, data: unknown): void {
    for (const network of this.networks) network.publish(subject, data);
  }

  /** Lets time pass in small steps, so that what follows from one step is there before the next. */
  async run(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += STEP_MS) {
      await this.timers.advance(Math.min(STEP_MS, forMs - passed));
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    await this.log.append({ ref, events: [event], expected: 'any', ...this.metadata() });
  }

  handle<State, Command, Event extends NewEvent>(decider: Decider<State, Command, Event>, ref: AggregateRef, command: Command) {
    return handleCommand(this.log, decider, ref, command, this.metadata());
  }

  /** An endpoint whose replicas reserve 400 MB each. */
  async deploy(endpointId: string, scaling: Partial<EndpointDeployedV1['scaling']> = {}, overrides: Partial<EndpointDeployedV1> = {}, model: { readonly modelName?: string; readonly precision?: string | null; readonly parameters?: number | null } = {}): Promise<void> {
    const modelVersionId = `mv_${endpointId}`;
    const memory = { weightBytes: 400_000_000, kvBytesPerToken: 0, overheadBytes: 0, basis: 'declared' } as const;
    const version: AggregateRef = { context: 'registry', aggregate: 'model-version', id: modelVersionId };
    await this.append(version, { type: 'model-version.submitted.v1', data: { ...modelVersionSubmittedV1.schema.parse(modelVersionSubmittedV1.example), modelVersionId, ...(model.modelName === undefined ? {} : { modelName: model.modelName }) } });
    await this.append(version, { type: 'model-version.registered.v1', data: { ...modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example), modelVersionId, memory, ...(model.precision === undefined ? {} : { precision: model.precision }), ...(model.parameters === undefined ? {} : { parameters: model.parameters }) } });
    const deployed = endpointDeployedV1.schema.parse(endpointDeployedV1.example);
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, {
      type: 'endpoint.deployed.v1',
      data: { ...deployed, endpointId, name: endpointId, modelVersionId, ...overrides, scaling: { ...deployed.scaling, ...scaling } },
    });
  }

  /** Rules of an endpoint that was deployed: on another GPU, in a slice, off spot nodes. */
  async rule(endpointId: string, rules: Partial<PlacementRules>): Promise<void> {
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.placement-set.v1', data: { endpointId, rules: { ...NO_RULES, ...rules } } });
  }

  async retire(endpointId: string): Promise<void> {
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.retired.v1', data: { endpointId, reason: 'deleted' } });
  }

  async want(endpointId: string, replicas: number): Promise<void> {
    await this.append({ context: 'scaling', aggregate: 'endpoint-scale', id: endpointId }, {
      type: 'wanted-replicas.changed.v1', data: { endpointId, from: 0, to: replicas, rule: 'floor', reason: 'a test wants it', signals: {} },
    });
  }

  /** The fleet as the log has it now. */
  fleet(): FleetState {
    return this.log.all('EV_FLEET').reduce((state, event) => fleetProjection.apply(state, event), fleetProjection.initialState());
  }

  living(endpointId?: string): readonly ReplicaState[] {
    return [...this.fleet().replicas.values()].filter((replica) => isLiving(replica.phase) && (endpointId === undefined || replica.endpointId === endpointId));
  }

  eventsOf(type: CatalogueEvent['type']) {
    return (['EV_FLEET', 'EV_SCALING'] as const).flatMap((stream) => this.log.all(stream)).filter((event) => event.type === type);
  }

  async close(): Promise<void> {
    for (const close of this.closers.reverse()) await close();
  }

  private metadata() {
    const commandId = this.ids.next('cmd');
    return { commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: this.clock.now() };
  }
}

const HEARTBEAT_INTERVAL_MS = 2_000;

/** An agent without engines: starts take no time, and do as `behaviour` says. */
export class FakeAgent {
  behaviour: 'works' | 'fails' | 'hangs' = 'works';
  private readonly stops: (() => void)[] = [];
  private isAlive = true;

  private constructor(private readonly world: FleetWorld, private readonly node: NodeJoinedV2, private readonly fleet: LiveProjection<FleetState>) {}

  /** A node with one CPU accelerator, or with what `change` says. It joins at once. */
  static async join(world: FleetWorld, nodeId: string, memoryBytes: number, change: Partial<NodeJoinedV2> = {}): Promise<FakeAgent> {
    const example = nodeJoinedV2.schema.parse(nodeJoinedV2.example);
    const node = { ...example, nodeId, hostname: nodeId, memoryBytes, accelerators: [{ acceleratorId: `acc_${nodeId}`, type: 'cpu', memoryBytes, device: null, usableBytes: memoryBytes, computeMilli: 1_000, islandId: null, mig: null }], failureDomain: nodeId, ...change };
    const agent = new FakeAgent(world, node, await followProjection(world.log, fleetProjection));
    await agent.come();
    return agent;
  }

  /** Dies without a word. */
  die(): void {
    this.isAlive = false;
    for (const stop of this.stops.splice(0)) stop();
  }

  /** Starts, or starts again after it died. */
  async come(): Promise<void> {
    this.isAlive = true;
    await this.world.handle(nodeDecider, nodeRef(this.node.nodeId), { kind: 'join', ...this.node });
    this.beat();
    this.stops.push(this.world.timers.every(HEARTBEAT_INTERVAL_MS, () => this.beat()));
    this.stops.push(this.fleet.onChange(() => void this.work()));
    await this.work();
  }

  private beat(): void {
    const { nodeId } = this.node;
    this.world.publish(`tele.node.${nodeId}`, nodeHeartbeat.parse({ nodeId, sentAtMs: this.world.clock.now(), replicas: [], diskFreeBytes: 1 }));
  }

  private async work(): Promise<void> {
    const { nodeId } = this.node;
    if (this.isAlive && this.fleet.state().nodes.get(nodeId)?.status === 'lost') await this.world.handle(nodeDecider, nodeRef(nodeId), { kind: 'join', ...this.node });
    for (const geometry of [...this.fleet.state().geometries.values()]) if (this.isAlive && geometry.nodeId === nodeId) await this.changeGeometry(geometry);
    for (const replica of [...this.fleet.state().replicas.values()]) {
      if (this.isAlive && replica.nodeId === nodeId) for (const command of this.hasInstance(replica) ? this.next(replica) : []) await this.world.handle(replicaDecider, replicaRef(replica.replicaId), command);
    }
  }

  /** Takes one step of a planned change, tells it, and ends the change after the last. */
  private async changeGeometry({ nodeId, acceleratorId, change, instances }: MigGeometryState): Promise<void> {
    if (change === null) return;
    const on = { nodeId, acceleratorId };
    const [step] = stepsLeft(change, instances);
    const { changeId } = change;
    const command: MigCommand = step === undefined
      ? { kind: 'end-change', ...on, changeId, outcome: 'done', reason: 'taken' }
      : step.kind === 'destroy'
        ? { kind: 'note-destroyed', ...on, changeId, profile: step.profile, start: step.start }
        : { kind: 'note-created', ...on, changeId, instance: { profile: step.profile, start: step.start, uuid: `MIG-${acceleratorId}-${step.start}` } };
    await this.world.handle(migGeometryDecider, migGeometryRef(acceleratorId), command);
  }

  private hasInstance({ mig, acceleratorIds }: ReplicaState): boolean {
    const geometry = this.fleet.state().geometries.get(acceleratorIds[0] ?? '');
    return mig === null || geometry?.instances.some((one) => one.profile === mig.profile && one.start === mig.start) === true;
  }

  private next({ phase, replicaId }: ReplicaState): readonly ReplicaCommand[] {
    if (phase === 'draining') return [{ kind: 'stop', reason: 'drained' }];
    if (phase !== 'placed' || this.behaviour === 'hangs') return [];
    if (this.behaviour === 'fails') return [{ kind: 'fail', code: 'engine_exited', reason: 'exit code 1' }];
    const { url, engine, servedModel, slots, contextTokens, timings } = replicaReadyV1.schema.parse(replicaReadyV1.example);
    return [{ kind: 'advance', phase: 'loading' }, { kind: 'mark-ready', replicaId, url, engine, servedModel, slots, contextTokens, timings }];
  }
}

/** Bytes by which any accelerator of a node that is up holds more than it has: 0 unless memory was given away twice. */
export function overcommittedBytes(fleet: FleetState): number {
  let over = 0;
  for (const node of fleet.nodes.values()) {
    for (const accelerator of node.accelerators) {
      const held = [...fleet.replicas.values()]
        .filter((replica) => isLiving(replica.phase) && replica.nodeId === node.nodeId && replica.acceleratorIds.includes(accelerator.acceleratorId))
        .reduce((sum, replica) => sum + replica.reservedBytes / replica.acceleratorIds.length, 0);
      over += Math.max(0, held - accelerator.memoryBytes);
    }
  }
  return over;
}

/** GPUs of a node, as `node.joined` tells them. */
export function gpusOf(nodeId: string, count: number, gpu: { readonly type: string; readonly memoryBytes: number; readonly hasMig?: boolean }): Pick<NodeJoinedV2, 'accelerators' | 'memoryBytes'> {
  return {
    memoryBytes: 1_000_000_000_000,
    accelerators: Array.from({ length: count }, (_, index) => ({
      acceleratorId: `acc_${nodeId}-${index}`, type: gpu.type, memoryBytes: gpu.memoryBytes, usableBytes: gpu.memoryBytes, device: `GPU-${nodeId}-${index}`, computeMilli: 1_000, islandId: 'nvlink-0',
      mig: gpu.hasMig === true ? { isEnabled: true, instances: [] } : null,
    })),
  };
}

/** Memory slices of MIG instances that two living replicas hold at once, and instances that overlap: empty unless something was given away twice. */
export function slicesHeldTwice(fleet: FleetState): readonly string[] {
  const lengths: Readonly<Record<string, number>> = { '1g.10gb': 1, '1g.20gb': 2, '2g.20gb': 2, '3g.40gb': 4, '4g.40gb': 4, '7g.80gb': 8 };
  const twice: string[] = [];
  const mark = (owner: Map<string, string>, acceleratorId: string, place: { readonly profile: string; readonly start: number }, who: string): void => {
    for (let slice = place.start; slice < place.start + (lengths[place.profile] ?? 0); slice += 1) {
      const key = `${acceleratorId}/${slice}`;
      if (owner.has(key)) twice.push(`${key}: ${owner.get(key)} and ${who}`);
      owner.set(key, who);
    }
  };
  const held = new Map<string, string>();
  for (const { phase, mig, acceleratorIds, replicaId } of fleet.replicas.values()) if (mig !== null && isLiving(phase)) mark(held, acceleratorIds[0] ?? '', mig, replicaId);
  const made = new Map<string, string>();
  for (const { acceleratorId, instances } of fleet.geometries.values()) for (const instance of instances) mark(made, acceleratorId, instance, instance.profile);
  return twice;
}

import { isDeepStrictEqual } from 'node:util';
import { endpointDeployedV1, modelVersionRegisteredV1, modelVersionSubmittedV1, reservationMadeV1, type CatalogueEvent } from '@penstock/contract-events';
import { replicaMemoryBytes } from '@penstock/domain-catalog';
import { fleetProjection, nodeDecider, nodeRef, type FleetState, type NodeCommand } from '@penstock/domain-lifecycle';
import { commitmentLedgerRef } from '@penstock/domain-placement';
import type { EngineProbe } from '@penstock/domain-serving';
import { readFleetDescription, SimulatedFleet } from '@penstock/infra-simulated-fleet';
import { handleCommand, silentLogger, type AggregateRef } from '@penstock/kernel';
import { SequentialIds } from '@penstock/testing-kit';
import { ModelledEngines, VirtualTime } from '@penstock/testing-simulator';
import { randomFrom } from '../../benchmarks/random.js';
import { FleetAudit, type AuditedDemand, type Violation } from './fleet-audit.js';
import { PlatformProcess, type ProcessWorld } from './platform-process.js';
import { TROUBLE_MS, type Action, type EndpointScript, type Scenario } from './scenario.js';
import { SharedLog } from './shared-log.js';
import { SignalNetwork } from './signal-network.js';

/** The longest the fleet may take to come to rest once everything has healed; the longest time-out and back-off lie well inside. */
const REST_MS_MAX = 120_000;
/** It has come to rest when nothing was missing for this long: longer than every loop's interval. */
const STEADY_MS = 5_000;
const WARM_UP_TOKENS = 40;
const SNAPSHOTS_CHECKED = 4;
const SERVING = { slotsPerReplica: 8, contextTokens: 4_096 } as const;
/** What chances of the run are drawn from is not what the scenario was drawn from, or shrinking would change both. */
const RUN_SEED_OFFSET = 0x5eed;

export interface RunOutcome {
  readonly violations: readonly Violation[];
  readonly events: number;
  /** How often each type of event stands in the log. */
  readonly countOf: ReadonlyMap<string, number>;
  /** Where processes died, such as `scheduler 3 before`: before the third append of its life was stored. */
  readonly crashes: readonly string[];
  readonly virtualMs: number;
}

/** One run of the whole scheduler in virtual time: two schedulers, a driver for each rack, and everything that can go wrong. */
export async function runScenario(scenario: Scenario): Promise<RunOutcome> {
  return new FleetRun(scenario).run();
}

class FleetRun {
  private readonly time = new VirtualTime();
  private readonly audit = new FleetAudit();
  private readonly log = new SharedLog(this.audit.see);
  private readonly ids = new SequentialIds();
  private readonly engines = new ModelledEngines(this.time, this.time);
  private readonly fleet: SimulatedFleet;
  private readonly network: SignalNetwork;
  private readonly processes: PlatformProcess[] = [];
  private readonly nodeIds: readonly string[];
  private readonly deployed = new Set<string>();
  /** By rack, the number of the process that speaks for it. */
  private readonly driverOf = new Map<string, number>();

  constructor(private readonly scenario: Scenario) {
    const description = readFleetDescription(scenario.fleet);
    const random = randomFrom(scenario.seed ^ RUN_SEED_OFFSET);
    this.network = new SignalNetwork(this.time, random);
    this.fleet = new SimulatedFleet({ description, clock: this.time, timers: this.time, engines: this.engines, agentVersion: '0.1.0', logger: silentLogger });
    this.nodeIds = [...this.fleet.machines.keys()];
    const world: ProcessWorld = { time: this.time, log: this.log, network: this.network, ids: this.ids, random };
    for (const side of [0, 1]) this.processes.push(new PlatformProcess(world, { kind: 'scheduler', side: scenario.isSplit ? side : undefined }));
    for (const domain of new Set([...this.fleet.machines.values()].map((machine) => machine.spec.domain))) {
      this.driverOf.set(domain, this.processes.length);
      this.processes.push(new PlatformProcess(world, { kind: 'driver', driver: () => this.fleet.driver((nodeId) => this.fleet.machines.get(nodeId)?.spec.domain === domain), probe: this.probe }));
    }
  }

  async run(): Promise<RunOutcome> {
    const startMs = this.time.now();
    for (const endpoint of this.scenario.endpoints) this.audit.expect(endpoint.endpointId, demandOf(endpoint));
    for (const process of this.processes) process.start();
    for (const [index, endpoint] of this.scenario.endpoints.entries()) this.time.after((index * this.scenario.deployMs) / this.scenario.endpoints.length, () => void this.deploy(endpoint));
    for (const action of this.scenario.actions) this.time.after(action.atMs, () => this.act(action));
    await this.time.run(TROUBLE_MS);
    this.heal();
    const rested = await this.comeToRest();
    const violations = [...this.audit.violations];
    if (!rested) violations.push({ rule: 'comes to rest', detail: this.restless() ?? 'it never stayed at rest' });
    violations.push(...(await this.checkReplay()));
    for (const bug of this.processes.flatMap((process) => process.bugs)) violations.push({ rule: 'no fault of its own', detail: bug.stack ?? bug.message });
    return { violations, events: this.audit.events, countOf: this.audit.countOf, crashes: this.processes.flatMap((process) => process.crashes), virtualMs: this.time.now() - startMs };
  }

  private async comeToRest(): Promise<boolean> {
    let seenEvents = -1;
    let isCalm = false;
    let sinceMs = 0;
    return this.time.run(REST_MS_MAX, () => {
      if (seenEvents !== this.audit.events || !isCalm) {
        const wasCalm = isCalm && seenEvents === this.audit.events;
        seenEvents = this.audit.events;
        isCalm = this.restless() === undefined;
        if (!wasCalm) sinceMs = this.time.now();
      }
      return isCalm && this.time.now() - sinceMs >= STEADY_MS;
    });
  }

  private restless(): string | undefined {
    const unsettled = this.audit.unsettled();
    if (unsettled !== undefined) return unsettled;
    const running = this.fleet.replicas(() => true).filter((replica) => replica.phase !== 'ending').map((replica) => replica.replicaId).sort();
    const living = [...this.audit.living()].sort();
    return running.join() === living.join() ? undefined : `engines of ${running.join(', ') || 'nobody'} run, and ${living.join(', ') || 'nobody'} should`;
  }

  /** The log gives the same state however it is read: in one go, from snapshots taken on the way, or from those that processes left. */
  private async checkReplay(): Promise<Violation[]> {
    const events = this.log.memory.all('EV_FLEET');
    const fold = (state: FleetState, from: number, to = events.length): FleetState => events.slice(from, to).reduce((current, event) => fleetProjection.apply(current, event), state);
    const text = (state: FleetState): string => JSON.stringify(fleetProjection.snapshot(state));
    const whole = text(fold(fleetProjection.initialState(), 0));
    const snapshots = await Promise.all(this.processes.map((process) => process.fleetSnapshot()));
    const left = snapshots.flatMap((stored) => (stored === undefined ? [] : [{ at: stored.positions['EV_FLEET'] ?? 0, state: stored.state }]));
    // Right after a decision the ledger holds more than the replicas tell.
    const decided = events.filter((event) => event.type === 'placement.decided.v2').map((event) => event.sequence).slice(0, SNAPSHOTS_CHECKED);
    const states = decided.map((at) => fold(fleetProjection.initialState(), 0, at));
    const taken = states.map((state, index) => ({ at: decided[index] ?? 0, state: JSON.parse(text(state)) as unknown }));
    // What a snapshot leaves out altogether is seen by neither of its copies, only by the state itself.
    const lost = taken.filter(({ state }, index) => !isDeepStrictEqual(fleetProjection.restore(state), states[index])).map(({ at }) => ({ rule: 'snapshots are whole', detail: `a snapshot at ${at} restores to another state than it was taken of` }));
    const led = [...left, ...taken]
      .filter(({ at, state }) => text(fleetProjection.restore(state)) !== JSON.stringify(state) || text(fold(fleetProjection.restore(state), at)) !== whole)
      .map(({ at }) => ({ rule: 'same state after replay', detail: `a snapshot at ${at} leads elsewhere than the log` }));
    return [...lost, ...led];
  }

  private async deploy(endpoint: EndpointScript): Promise<void> {
    const { endpointId, acceleratorType, acceleratorCount, nodes, migProfile, allowsSpot, organisationId } = endpoint;
    const modelVersionId = `mv_${endpointId}`;
    const memory = memoryOf(endpoint);
    this.deployed.add(endpointId);
    const version: AggregateRef = { context: 'registry', aggregate: 'model-version', id: modelVersionId };
    const deployed = endpointDeployedV1.schema.parse(endpointDeployedV1.example);
    await this.append(version, { type: 'model-version.submitted.v1', data: { ...modelVersionSubmittedV1.schema.parse(modelVersionSubmittedV1.example), modelVersionId } });
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, {
      type: 'endpoint.deployed.v1',
      data: { ...deployed, endpointId, name: endpointId, modelVersionId, organisationId, engine: 'vllm', hardware: { acceleratorType, acceleratorCount }, scaling: { ...deployed.scaling, maxReplicas: 10 }, serving: { ...deployed.serving, ...SERVING } },
    });
    const rules = { nodes, computeMilli: null, migProfile, cpuMilli: null, hostMemoryBytes: null, allowsSpot, pinnedNodeIds: null, tolerations: [] };
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.placement-set.v1', data: { endpointId, rules } });
    await this.want(endpointId, endpoint.wanted);
    await this.append(version, { type: 'model-version.registered.v1', data: { ...modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example), modelVersionId, contextTokensMax: SERVING.contextTokens, memory } });
  }

  private want(endpointId: string, replicas: number): Promise<void> {
    return this.append({ context: 'scaling', aggregate: 'endpoint-scale', id: endpointId }, { type: 'wanted-replicas.changed.v1', data: { endpointId, from: 0, to: replicas, rule: 'floor', reason: 'the script wants it', signals: {} } });
  }

  private async reserve({ endpoint, replicas, priority, forMs }: Extract<Action, { kind: 'reserve' }>): Promise<void> {
    const made = reservationMadeV1.schema.parse(reservationMadeV1.example);
    const reservationId = this.ids.next('cmd').replace('cmd', 'res');
    const endpointId = this.endpointOf(endpoint);
    const level = { ...made.level, endpointId, organisationId: null, requestsPerS: 0, tokensPerS: 0, replicas, priority, gpuType: null, tolerates: 'nothing' as const, from: new Date(this.time.now()).toISOString(), to: null };
    const capacity = { ...made.capacity, requestsPerS: null, leadSeconds: 0, parts: made.capacity.parts.slice(0, 1).map((part) => ({ ...part, count: replicas })) };
    await this.append(commitmentLedgerRef, { type: 'reservation.made.v1', data: { reservationId, level, capacity, reason: 'the script promises it' } });
    if (forMs !== null) this.time.after(forMs, () => void this.append(commitmentLedgerRef, { type: 'reservation.released.v1', data: { reservationId, endpointId, cause: 'operator', reason: 'the script ends it' } }));
  }

  private act(action: Action): void {
    const { fleet } = this;
    switch (action.kind) {
      case 'want': return void this.want(this.endpointOf(action.endpoint), action.replicas);
      case 'reserve': return void this.reserve(action);
      case 'retire': return !this.deployed.has(this.endpointOf(action.endpoint)) ? undefined : void this.append({ context: 'registry', aggregate: 'endpoint', id: this.endpointOf(action.endpoint) }, { type: 'endpoint.retired.v1', data: { endpointId: this.endpointOf(action.endpoint), reason: 'the script retires it' } });
      case 'hang-starts': return fleet.hangStarts(this.endpointOf(action.endpoint), action.count);
      case 'fail-starts': return fleet.failStarts(this.endpointOf(action.endpoint), action.count);
      case 'crash-engine': {
        const replicas = fleet.replicas(() => true);
        const victim = replicas[action.index % Math.max(1, replicas.length)];
        return victim === undefined ? undefined : fleet.crashEngine(victim.replicaId);
      }
      case 'crash-process': return this.process(action.process).crashIn(action.inAppends, action.isStored, action.forMs);
      case 'cut-process': return this.forAWhile(action.forMs, (isOn) => this.process(action.process).setCut(isOn));
      case 'slow-process': return this.forAWhile(action.forMs, (isOn) => this.process(action.process).setSlow(isOn));
      default: return this.actOnNode(action);
    }
  }

  private actOnNode(action: Extract<Action, { node: number }>): void {
    const { fleet, network } = this;
    const nodeId = this.nodeIds[action.node % this.nodeIds.length] as string;
    const back = (ids: readonly string[], afterMs: number | null): void => {
      if (afterMs !== null) this.time.after(afterMs, () => ids.forEach((id) => fleet.returnNode(id)));
    };
    switch (action.kind) {
      case 'fail-node':
        fleet.failNode(nodeId);
        return back([nodeId], action.forMs);
      case 'fail-rack': case 'lose-rack': {
        const domain = fleet.machines.get(nodeId)?.spec.domain ?? '';
        const rack = this.nodeIds.filter((id) => fleet.machines.get(id)?.spec.domain === domain);
        for (const id of rack) fleet.failNode(id);
        return action.kind === 'lose-rack' ? this.process(this.driverOf.get(domain) ?? 0).end() : back(rack, action.forMs);
      }
      case 'reclaim-node':
        fleet.reclaim(nodeId, action.noticeMs);
        return back([nodeId], action.forMs === null ? null : action.noticeMs + action.forMs);
      case 'close-node':
        void this.operate(nodeId, { kind: action.isDrain ? 'request-drain' : 'cordon', reason: 'the script closes it' });
        if (action.forMs !== null) this.time.after(action.forMs, () => void this.operate(nodeId, { kind: 'uncordon', reason: 'the script opens it' }));
        return;
      case 'cut-node': return this.forAWhile(action.forMs, (isOn) => fleet.setReachable(nodeId, !isOn));
      case 'mute-node': return this.forAWhile(action.forMs, (isOn) => void (isOn ? network.silentNodes.add(nodeId) : network.silentNodes.delete(nodeId)));
    }
  }

  private async operate(nodeId: string, command: NodeCommand): Promise<void> {
    const commandId = this.ids.next('cmd');
    await handleCommand(this.log, nodeDecider, nodeRef(nodeId), command, { commandId, correlationId: commandId, causationId: commandId, source: 'penstock/drill', nowMs: this.time.now() });
  }

  private forAWhile(forMs: number, set: (isOn: boolean) => void): void {
    set(true);
    this.time.after(forMs, () => set(false));
  }

  /** Links, signals and processes are well again. Nodes that went for good stay away. */
  private heal(): void {
    for (const process of this.processes) process.calm();
    this.network.silentNodes.clear();
    for (const nodeId of this.nodeIds) this.fleet.setReachable(nodeId, true);
    for (const { endpointId } of this.scenario.endpoints) {
      this.fleet.failStarts(endpointId, 0);
      this.fleet.hangStarts(endpointId, 0);
    }
  }

  private endpointOf(index: number): string {
    return this.scenario.endpoints[index % this.scenario.endpoints.length]?.endpointId ?? '';
  }

  private process(index: number): PlatformProcess {
    return this.processes[index % this.processes.length] as PlatformProcess;
  }

  /** An engine answers its first request, and tells its load, by the engine model. */
  private readonly probe: EngineProbe = {
    generate: ({ url }) => {
      const engine = this.engines.engineOf(url.split('/').at(-1) ?? '');
      if (engine === undefined) return Promise.resolve({ kind: 'failed', reason: 'nobody listens' });
      return new Promise((resolve) => {
        const submission = engine.submit({ id: this.ids.next('req'), promptTokens: WARM_UP_TOKENS, outputTokens: 1 }, (end) => resolve(end.kind === 'answered' ? { kind: 'answered', ms: end.answer.e2eMs, completionTokens: 1 } : { kind: 'failed', reason: end.reason }));
        if (submission.kind !== 'queued') resolve({ kind: 'failed', reason: submission.kind });
      });
    },
    telemetry: async ({ url }) => {
      const metrics = this.engines.engineOf(url.split('/').at(-1) ?? '')?.metrics;
      return metrics === undefined ? undefined : { running: metrics.running, waiting: metrics.waiting, kvCacheUsage: metrics.kvUsage, promptTokensTotal: metrics.promptTokens, completionTokensTotal: metrics.producedTokens };
    },
  };

  private async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    const commandId = this.ids.next('cmd');
    await this.log.append({ ref, events: [event], expected: 'any', commandId, correlationId: commandId, causationId: commandId, source: 'penstock/drill', nowMs: this.time.now() });
  }
}

function memoryOf({ weightBytes, kvBytesPerToken }: EndpointScript) {
  return { weightBytes, kvBytesPerToken, overheadBytes: 0, basis: 'declared' } as const;
}

function demandOf(endpoint: EndpointScript): AuditedDemand {
  const { acceleratorType: type, acceleratorCount: count, nodes, migProfile, allowsSpot } = endpoint;
  return { type, count, nodes, migProfile, allowsSpot, bytesEach: Math.ceil(replicaMemoryBytes(memoryOf(endpoint), SERVING) / count / nodes) };
}

import { endpointDeployedV1, modelVersionRegisteredV1, modelVersionSubmittedV1, nodeJoinedV2, type CatalogueEvent, replicaPlacedV2 } from '@penstock/contract-events';
import { fleetProjection, replicaDecider, replicaRef, type DrivenNode, type FleetState, type ReplicaCommand, type ReplicaState } from '@penstock/domain-lifecycle';
import type { EngineProbe, ProbeResult } from '@penstock/domain-serving';
import { followProjection, handleCommand, silentLogger, type AggregateRef, type Projection } from '@penstock/kernel';
import { FixedClock, LocalCommandClient, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds, SimulatedReplicaDriver } from '@penstock/testing-kit';
import { replicaDriverConfig } from './driver-config.js';
import { runReplicaDriver, type RunningReplicaDriver } from './run-replica-driver.js';

const STEP_MS = 50;
/** Events of one append, and what follows from them, settle within this many turns of the event loop. */
const TURNS = 6;

/** A driver service over an imagined fleet; time passes only in `run`. */
export class DriverWorld {
  readonly clock = new FixedClock();
  readonly timers = new ManualTimers(this.clock);
  readonly log = new MemoryEventLog();
  readonly ids = new SequentialIds();
  readonly signals = new MemorySignals();
  readonly driver = new SimulatedReplicaDriver(this.timers);
  /** What engines answer to their first generation. */
  warmUp: ProbeResult = { kind: 'answered', ms: 12, completionTokens: 1 };
  /** Requests that every engine works on. */
  running = 0;
  private service: RunningReplicaDriver | undefined;

  async start(): Promise<void> {
    const { clock, timers, ids, signals, log, driver } = this;
    const probe: EngineProbe = {
      generate: async () => this.warmUp,
      telemetry: async () => ({ running: this.running, waiting: 0, kvCacheUsage: 0, promptTokensTotal: 0, completionTokensTotal: 0 }),
    };
    this.service = await runReplicaDriver(replicaDriverConfig.parse({}), {
      clock, timers, ids, signals, log, driver, probe, commands: new LocalCommandClient(), logger: silentLogger,
      follow: <State>(projection: Projection<State>) => followProjection(log, projection),
    });
    await this.run(STEP_MS);
  }

  async stop(): Promise<void> {
    await this.service?.close();
  }

  async run(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += STEP_MS) {
      await this.timers.advance(Math.min(STEP_MS, forMs - passed));
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  node(nodeId = 'node_sim_1', change: Partial<DrivenNode> = {}): DrivenNode {
    return { report: { ...nodeJoinedV2.schema.parse(nodeJoinedV2.example), nodeId }, isReady: true, reason: null, ...change };
  }

  async deploy(wanted: number): Promise<void> {
    const submitted = modelVersionSubmittedV1.schema.parse(modelVersionSubmittedV1.example);
    const version: AggregateRef = { context: 'registry', aggregate: 'model-version', id: submitted.modelVersionId };
    await this.append(version, { type: 'model-version.submitted.v1', data: submitted });
    await this.append(version, { type: 'model-version.registered.v1', data: modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example) });
    const deployed = endpointDeployedV1.schema.parse(endpointDeployedV1.example);
    await this.append({ context: 'registry', aggregate: 'endpoint', id: deployed.endpointId }, { type: 'endpoint.deployed.v1', data: deployed });
    await this.append({ context: 'scaling', aggregate: 'endpoint-scale', id: deployed.endpointId }, {
      type: 'wanted-replicas.changed.v1', data: { endpointId: deployed.endpointId, from: 0, to: wanted, rule: 'floor', reason: 'a test wants it', signals: {} },
    });
  }

  async place(replicaId: string, nodeId = 'node_sim_1'): Promise<void> {
    await this.say(replicaId, { kind: 'place', ...replicaPlacedV2.schema.parse(replicaPlacedV2.example), replicaId, members: [{ nodeId, acceleratorIds: [] }], reservedBytes: 1 });
  }

  async say(replicaId: string, command: ReplicaCommand): Promise<void> {
    await handleCommand(this.log, replicaDecider, replicaRef(replicaId), command, this.metadata());
  }

  fleet(): FleetState {
    return this.log.all('EV_FLEET').reduce((state, event) => fleetProjection.apply(state, event), fleetProjection.initialState());
  }

  replica(replicaId: string): ReplicaState | undefined {
    return this.fleet().replicas.get(replicaId);
  }

  typesOf(id: string): readonly string[] {
    return this.log.all('EV_FLEET').filter((event) => event.ref.id === id).map((event) => event.type);
  }

  private async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    await this.log.append({ ref, events: [event], expected: 'any', ...this.metadata() });
  }

  private metadata() {
    const commandId = this.ids.next('cmd');
    return { commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: this.clock.now() };
  }
}

import { endpointDeployedV1, modelVersionRegisteredV1, modelVersionSubmittedV1, type CatalogueEvent, type EngineKind, type MigStepFact } from '@penstock/contract-events';
import { fleetProjection, migGeometryDecider, migGeometryRef, replicaDecider, type MigCommand, replicaRef, type FleetState, type ReplicaCommand, type ReplicaState } from '@penstock/domain-lifecycle';
import {
  ArtifactPullError, EngineStartError, type AgentMemory, type DetectedAccelerator, type ArtifactPuller, type EngineDriver, type EngineExit, type EngineProbe, type EngineProcess, type EngineRecord,
  type EngineRecords, type EngineStartSpec, type EngineTelemetry, type ProbeResult, type PulledArtifact, type PullRequest,
} from '@penstock/domain-serving';
import { EventLogUnavailableError, followProjection, handleCommand, silentLogger, type AggregateRef, type EventLog, type Projection } from '@penstock/kernel';
import { FixedClock, LocalCommandClient, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds, SimulatedMigDriver } from '@penstock/testing-kit';
import { agentConfig, type AgentConfig } from './agent-config.js';
import type { AgentPorts } from './agent-ports.js';
import { runAgent, type RunningAgent } from './run-agent.js';

const STEP_MS = 50;
/** Events of one append, and what follows from them, settle within this many turns of the event loop. */
const TURNS = 6;

/** One engine on the pretended machine: it lives on when its agent is gone. */
export class FakeEngine implements EngineProcess {
  private readonly end = Promise.withResolvers<EngineExit>();
  readonly exited = this.end.promise;
  isRunning = true;
  wasAskedToStop = false;
  telemetry: EngineTelemetry | undefined = { running: 0, waiting: 0, kvCacheUsage: 0, promptTokensTotal: 0, completionTokensTotal: 0 };
  answers: ProbeResult = { kind: 'answered', ms: 12, completionTokens: 1 };

  constructor(readonly record: EngineRecord, readonly spec: EngineStartSpec) {}

  get url(): string {
    return this.record.url;
  }

  get pid(): number | null {
    return this.record.pid;
  }

  get servedModel(): string {
    return this.record.servedModel;
  }

  async stop(): Promise<void> {
    this.wasAskedToStop = true;
    this.die('asked to stop');
  }

  async kill(): Promise<void> {
    this.die('killed');
  }

  die(reason: string): void {
    this.isRunning = false;
    this.end.resolve({ reason });
  }
}

/** What survives an agent: engines, its memory on disk, the cache. */
export class FakeMachine implements EngineDriver, EngineProbe, ArtifactPuller, EngineRecords {
  readonly kind: EngineKind = 'llama.cpp';
  readonly engines: FakeEngine[] = [];
  memory: AgentMemory | undefined;
  /** What the next start does; a promise holds it. */
  onStart: (spec: EngineStartSpec) => Promise<void> = async () => undefined;
  onPull: (request: PullRequest) => Promise<void> = async () => undefined;
  isIntact = true;
  isInstalled = true;
  held = 0;

  get running(): readonly FakeEngine[] {
    return this.engines.filter((engine) => engine.isRunning);
  }

  async detect(): Promise<{ version: string } | undefined> {
    return this.isInstalled ? { version: '1.0' } : undefined;
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if (!this.isInstalled) throw new EngineStartError('engine_missing', 'not installed');
    const pid = this.engines.length + 1;
    const record: EngineRecord = {
      replicaId: spec.replicaId, kind: this.kind, url: `http://127.0.0.1:${40_000 + pid}`, servedModel: spec.modelName, pid, processIdentity: `boot:${pid}`, logFile: spec.logFile,
    };
    const engine = new FakeEngine(record, spec);
    this.engines.push(engine);
    await spec.onSpawned?.(record);
    try {
      await this.onStart(spec);
    } catch (error) {
      engine.die('start failed');
      throw error;
    }
    return engine;
  }

  async adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    return this.running.find((engine) => engine.pid === record.pid);
  }

  async generate(target: { readonly url: string }): Promise<ProbeResult> {
    return this.engines.find((engine) => engine.url === target.url)?.answers ?? { kind: 'failed', reason: 'no such engine' };
  }

  async telemetry(target: { readonly url: string }): Promise<EngineTelemetry | undefined> {
    return this.running.find((engine) => engine.url === target.url)?.telemetry;
  }

  async pull(request: PullRequest): Promise<PulledArtifact> {
    request.onProgress?.({ file: 'model.gguf', completedBytes: 50, totalBytes: 100 });
    await this.onPull(request);
    this.held += 1;
    return {
      path: '/cache/model', ms: 7, fromCache: false,
      verify: async () => (this.isIntact ? { intact: true } : { intact: false, reason: 'model.gguf has another digest' }),
      release: () => {
        this.held -= 1;
      },
    };
  }

  async freeDiskBytes(): Promise<number> {
    return 1_000_000;
  }

  async load(): Promise<AgentMemory | undefined> {
    return this.memory;
  }

  async save(memory: AgentMemory): Promise<void> {
    this.memory = JSON.parse(JSON.stringify(memory)) as AgentMemory;
  }
}

/** A log whose writes can be refused, as when the broker is away. */
class SwitchableLog {
  isAway = false;

  constructor(readonly log: MemoryEventLog) {}

  asEventLog(): EventLog {
    const { log } = this;
    const reachable = (): void => {
      if (this.isAway) throw new EventLogUnavailableError('switched off by the test');
    };
    return {
      append: async (request) => {
        reachable();
        return log.append(request);
      },
      load: async (ref, after) => {
        reachable();
        return log.load(ref, after);
      },
      read: (stream, options) => log.read(stream, options),
      tail: (stream, from, onBatch) => log.tail(stream, from, onBatch),
      bounds: (stream) => log.bounds(stream),
    };
  }
}

/** An agent on a pretended machine; time passes only in `run`. */
export class AgentWorld {
  readonly clock = new FixedClock();
  readonly timers = new ManualTimers(this.clock);
  readonly log = new MemoryEventLog();
  readonly switch = new SwitchableLog(this.log);
  readonly ids = new SequentialIds();
  readonly signals = new MemorySignals();
  readonly machine = new FakeMachine();
  readonly mig = new SimulatedMigDriver();
  /** Whether the machine has an A100 with MIG on beside its other devices. */
  hasMig = false;
  readonly config: AgentConfig;
  private agents: RunningAgent[] = [];

  constructor(settings: Readonly<Record<string, string>> = {}) {
    this.config = agentConfig.parse({ AGENT_DATA_DIR: '/data', ...settings });
  }

  ports(): AgentPorts {
    const { clock, timers, ids, signals, machine } = this;
    return {
      clock, timers, ids, signals, log: this.switch.asEventLog(), commands: new LocalCommandClient(), logger: silentLogger,
      follow: <State>(projection: Projection<State>) => followProjection(this.log, projection),
      drivers: [machine], probe: machine, artifacts: machine, records: machine, agentVersion: '0.1.0',
      mig: this.mig,
      hardware: { detect: async () => ({ hostname: 'host', cpuCores: 2, memoryBytes: 8e9, accelerators: [{ type: 'cpu', memoryBytes: 6e9, device: null }, { type: 'h100', memoryBytes: 80e9, device: 'GPU-1' }, ...(this.hasMig ? [await this.a100()] : [])] }) },
    };
  }

  private async a100(): Promise<DetectedAccelerator> {
    return { type: 'a100', memoryBytes: 80_896 * 1_048_576, device: 'GPU-2', mig: { isEnabled: true, instances: await this.mig.list('GPU-2') } };
  }

  async startAgent(config = this.config): Promise<RunningAgent> {
    const agent = await runAgent(config, this.ports());
    this.agents.push(agent);
    await this.run(STEP_MS);
    return agent;
  }

  /** Stops the agent's timers and subscriptions without a word, as a crash does; engines run on. */
  async crash(agent: RunningAgent): Promise<void> {
    this.agents = this.agents.filter((other) => other !== agent);
    await agent.vanish();
  }

  async run(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += STEP_MS) {
      await this.timers.advance(Math.min(STEP_MS, forMs - passed));
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async deploy(engine: EngineKind = 'llama.cpp'): Promise<void> {
    const submitted = modelVersionSubmittedV1.schema.parse(modelVersionSubmittedV1.example);
    const version: AggregateRef = { context: 'registry', aggregate: 'model-version', id: submitted.modelVersionId };
    await this.append(version, { type: 'model-version.submitted.v1', data: submitted });
    await this.append(version, { type: 'model-version.registered.v1', data: modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example) });
    const deployed = endpointDeployedV1.schema.parse(endpointDeployedV1.example);
    await this.append({ context: 'registry', aggregate: 'endpoint', id: deployed.endpointId }, { type: 'endpoint.deployed.v1', data: { ...deployed, engine } });
  }

  async place(replicaId: string, nodeId: string, acceleratorIds: readonly string[] = [], mig: { profile: string; start: number } | null = null): Promise<void> {
    await this.placeGang(replicaId, [nodeId], acceleratorIds, mig);
  }

  async placeGang(replicaId: string, nodeIds: readonly string[], acceleratorIds: readonly string[] = [], mig: { profile: string; start: number } | null = null): Promise<void> {
    await this.say(replicaId, {
      kind: 'place', replicaId, endpointId: 'ep_01', modelVersionId: 'mv_01', members: nodeIds.map((nodeId) => ({ nodeId, acceleratorIds: [...acceleratorIds] })), reservedBytes: 1,
      computeMilli: 0, cpuMilli: 0, hostMemoryBytes: 0, mig, option: { precision: null, market: 'on_demand', dollarsPerHour: null }, replaces: null,
      reason: { summary: 'a test', candidates: [], plan: null },
    });
  }

  /** What the scheduler does for a placement whose instance is not there. */
  async planMig(replicaId: string, nodeId: string, acceleratorId: string, steps: readonly MigStepFact[]): Promise<void> {
    const change: MigCommand = { kind: 'plan-change', nodeId, acceleratorId, changeId: `mig-${replicaId}`, steps: [...steps], forReplicaId: replicaId, reason: 'a test wants it' };
    await handleCommand(this.log, migGeometryDecider, migGeometryRef(acceleratorId), change, this.metadata());
  }

  async say(replicaId: string, command: ReplicaCommand): Promise<void> {
    await handleCommand(this.log, replicaDecider, replicaRef(replicaId), command, this.metadata());
  }

  replica(replicaId: string): ReplicaState | undefined {
    return this.fleet().replicas.get(replicaId);
  }

  fleet(): FleetState {
    return this.log.all('EV_FLEET').reduce((state, event) => fleetProjection.apply(state, event), fleetProjection.initialState());
  }

  typesOf(id: string): readonly string[] {
    return this.log.all('EV_FLEET').filter((event) => event.ref.id === id).map((event) => event.type);
  }

  async close(): Promise<void> {
    for (const agent of this.agents) await agent.close();
  }

  private async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    await this.log.append({ ref, events: [event], expected: 'any', ...this.metadata() });
  }

  private metadata() {
    const commandId = this.ids.next('cmd');
    return { commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: this.clock.now() };
  }
}

export const pullFailure = (code: 'pull_failed' | 'digest_mismatch' | 'no_disk_space') => async (): Promise<void> => {
  throw new ArtifactPullError(code, `failed with ${code}`);
};

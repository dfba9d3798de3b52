import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { replicaTelemetry } from '@penstock/contract-commands';
import { modelVersionDecider, modelVersionRef } from '@penstock/domain-catalog';
import { replicaDecider, replicaRef, fleetProjection, type ReplicaCommand, type ReplicaState } from '@penstock/domain-lifecycle';
import { endpointDeployedV1, modelVersionSubmittedV1, replicaPlacedV2 } from '@penstock/contract-events';
import { NodeArtifactCache } from '@penstock/infra-artifacts';
import { EngineSimDriver, FileEngineRecords, HttpEngineProbe, MachineHardwareProbe } from '@penstock/infra-engines';
import { createSystemTimers, randomIds, systemClock } from '@penstock/infra-telemetry';
import { followProjection, handleCommand, silentLogger, type Projection } from '@penstock/kernel';
import { eventually, LocalCommandClient, MemoryEventLog, MemorySignals } from '@penstock/testing-kit';
import { agentConfig } from './agent-config.js';
import type { AgentPorts } from './agent-ports.js';
import { runAgent } from './run-agent.js';
import { startAgent } from './start-agent.js';

const root = join(import.meta.dirname, '..', '..', '..', '..');

let folder: string;
let log: MemoryEventLog;
let signals: MemorySignals;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim'], { cwd: root });
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-agent-'));
  log = new MemoryEventLog();
  signals = new MemorySignals();
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

const config = () => agentConfig.parse({ AGENT_DATA_DIR: folder, DRAIN_TIMEOUT_MS: '8000', TELEMETRY_INTERVAL_MS: '50', RECONCILE_INTERVAL_MS: '200' });

function ports(): AgentPorts {
  return {
    clock: systemClock, timers: createSystemTimers(silentLogger), ids: randomIds, signals, log, commands: new LocalCommandClient(), logger: silentLogger, agentVersion: '0.1.0',
    follow: <State>(projection: Projection<State>) => followProjection(log, projection),
    drivers: [new EngineSimDriver({ scriptPath: join(root, 'apps/engine-sim/dist/main.js'), version: '0.1.0' })],
    probe: new HttpEngineProbe(), artifacts: new NodeArtifactCache({ dir: join(folder, 'cache') }), records: new FileEngineRecords(join(folder, 'agent.json')), hardware: new MachineHardwareProbe(),
  };
}

const metadata = () => ({ commandId: randomIds.next('cmd'), correlationId: 'test', causationId: 'test', source: 'penstock/test', nowMs: Date.now() });

async function deploy(): Promise<void> {
  const submitted = { ...modelVersionSubmittedV1.schema.parse(modelVersionSubmittedV1.example), modelName: 'sim', engine: 'engine-sim' as const, source: { kind: 'none' as const } };
  await handleCommand(log, modelVersionDecider, modelVersionRef('mv_01'), { kind: 'submit', data: submitted }, metadata());
  const registered = {
    modelVersionId: 'mv_01', artifacts: [], source: { kind: 'none' as const }, format: 'none' as const, architecture: null, parameters: null, precision: null, layers: null, contextTokensMax: 4_096,
    memory: { weightBytes: 0, kvBytesPerToken: 0, overheadBytes: 0, basis: 'declared' as const }, capabilities: ['chat' as const], license: null, randomWeights: false,
  };
  await handleCommand(log, modelVersionDecider, modelVersionRef('mv_01'), { kind: 'register', data: registered }, metadata());
  const deployed = { ...endpointDeployedV1.schema.parse(endpointDeployedV1.example), engine: 'engine-sim' as const };
  await log.append({ ref: { context: 'registry', aggregate: 'endpoint', id: 'ep_01' }, events: [{ type: 'endpoint.deployed.v1', data: deployed }], expected: 'any', ...metadata() });
}

async function say(command: ReplicaCommand): Promise<void> {
  await handleCommand(log, replicaDecider, replicaRef('rep_1'), command, metadata());
}

function replica(): ReplicaState | undefined {
  return log.all('EV_FLEET').reduce((state, event) => fleetProjection.apply(state, event), fleetProjection.initialState()).replicas.get('rep_1');
}

function phaseBecomes(phase: ReplicaState['phase']): Promise<ReplicaState | undefined> {
  return eventually(replica, (found) => found?.phase === phase);
}

async function place(nodeId: string): Promise<ReplicaState | undefined> {
  await deploy();
  await say({ kind: 'place', ...replicaPlacedV2.schema.parse(replicaPlacedV2.example), replicaId: 'rep_1', members: [{ nodeId, acceleratorIds: [] }], reservedBytes: 1 });
  return phaseBecomes('ready');
}

async function pidOfEngine(): Promise<number> {
  const memory = JSON.parse(await readFile(join(folder, 'agent.json'), 'utf8')) as { engines: { pid: number }[] };
  return memory.engines[0]?.pid ?? 0;
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('with the simulated engine as a real process', () => {
  test('ready, asked, taken over after a crash of the agent, drained, stopped', async () => {
    const first = await runAgent(config(), ports());
    const ready = await place(first.nodeId);
    const pid = await pidOfEngine();
    const answer = await fetch(`${ready?.url ?? ''}/v1/chat/completions`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: ready?.servedModel, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5, ignore_eos: true }),
    });
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 5 } });
    // One token of the warm-up and five of the answer.
    await eventually(() => signals.published.filter(({ subject }) => subject === 'tele.replica.rep_1').map(({ data }) => replicaTelemetry.parse(data)).at(-1), (sample) => sample?.completionTokensTotal === 6);

    await first.vanish();
    expect(isAlive(pid)).toBe(true);
    const second = await runAgent(config(), ports());
    closers.push(() => second.close());
    expect([second.nodeId, second.replicaIds(), await pidOfEngine()]).toEqual([first.nodeId, ['rep_1'], pid]);

    await say({ kind: 'start-drain', reason: 'scale down' });
    await phaseBecomes('stopped');
    expect(isAlive(pid)).toBe(false);
  });

  test('kill -9 of the engine fails the replica and says so', async () => {
    const agent = await runAgent(config(), ports());
    closers.push(() => agent.close());
    await place(agent.nodeId);
    process.kill(await pidOfEngine(), 'SIGKILL');
    expect(await phaseBecomes('failed')).toMatchObject({ failureCode: 'engine_exited', reason: expect.stringContaining('SIGKILL') as unknown as string });
  });

  test('the service answers health, and closing it leaves no process and no node behind', async () => {
    const service = await startAgent(config(), ports());
    await place(service.nodeId);
    const pid = await pidOfEngine();
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${service.url}/metrics`)).text()).toContain('penstock_agent_replicas{service="agent"} 1');
    await service.close();
    expect(isAlive(pid)).toBe(false);
    expect(replica()?.phase).toBe('stopped');
    expect(log.all('EV_FLEET').at(-1)).toMatchObject({ type: 'node.lost.v1', data: { cause: 'left' } });
  });
});

import { afterEach, describe, expect, test } from '@jest/globals';
import { nodeHeartbeat, pullProgress, replicaTelemetry } from '@penstock/contract-commands';
import { EngineStartError } from '@penstock/domain-serving';
import { AgentWorld, pullFailure } from './agent-world-suite.js';

let world: AgentWorld;

afterEach(() => world.close());

async function aReadyReplica(settings: Readonly<Record<string, string>> = {}) {
  world = new AgentWorld(settings);
  const agent = await world.startAgent();
  await world.deploy();
  await world.place('rep_1', agent.nodeId);
  await world.run(500);
  expect(world.replica('rep_1')?.phase).toBe('ready');
  const engine = world.machine.running[0];
  if (engine === undefined) throw new Error('no engine runs');
  return { agent, engine };
}

describe('joining', () => {
  test('reports hardware and engines, sends heartbeats, and keeps its ids over restarts', async () => {
    world = new AgentWorld();
    const first = await world.startAgent();
    await world.run(4_000);
    const node = world.fleet().nodes.get(first.nodeId);
    expect(node).toMatchObject({ status: 'up', hostname: 'host', engines: [{ kind: 'llama.cpp', version: '1.0' }] });
    expect(node?.accelerators.map(({ type, device }) => [type, device])).toEqual([['cpu', null], ['h100', 'GPU-1']]);
    const beats = world.signals.published.filter(({ subject }) => subject === `tele.node.${first.nodeId}`).map(({ data }) => nodeHeartbeat.parse(data));
    expect(beats).toHaveLength(3);
    await world.crash(first);
    const second = await world.startAgent();
    expect(second.nodeId).toBe(first.nodeId);
    expect(world.typesOf(first.nodeId)).toEqual(['node.joined.v2']);
  });

  test('joins again when the scheduler thought it lost', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    const { nodeDecider, nodeRef } = await import('@penstock/domain-lifecycle');
    const { handleCommand } = await import('@penstock/kernel');
    const metadata = { commandId: 'cmd-x', correlationId: 'c', causationId: 'c', source: 'penstock/test', nowMs: world.clock.now() };
    await handleCommand(world.log, nodeDecider, nodeRef(agent.nodeId), { kind: 'lose', cause: 'missed-heartbeats', reason: 'no heartbeat' }, metadata);
    await world.run(3_000);
    expect(world.fleet().nodes.get(agent.nodeId)?.status).toBe('up');
  });
});

describe('a start', () => {
  test('pulls, loads, warms up and becomes ready, with progress, url, slots and timings', async () => {
    const { engine } = await aReadyReplica();
    expect(world.typesOf('rep_1')).toEqual(['replica.placed.v2', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.ready.v1', 'replica-profile.measured.v1']);
    expect(world.replica('rep_1')).toMatchObject({ url: engine.url, engine: 'llama.cpp', servedModel: 'smollm2-135m-instruct', slots: 4, contextTokens: 2_048 });
    expect(world.log.all('EV_FLEET').findLast((event) => event.type === 'replica.ready.v1')?.data).toMatchObject({ timings: { pullMs: 7, warmUpMs: 12 } });
    expect([...world.fleet().profiles.values()]).toMatchObject([{ modelVersionId: 'mv_01', device: { acceleratorType: 'cpu', slice: null }, weightBytes: 98_000_000, kvTokens: 8_192, start: { source: 'object_store', pullMs: 7, warmUpMs: 12 } }]);
    expect(engine.spec).toMatchObject({ modelPath: '/cache/model', slots: 4, contextTokens: 2_048, device: null, logFile: '/data/replicas/rep_1/engine.log' });
    const progress = world.signals.published.filter(({ subject }) => subject === 'tele.pull.rep_1').map(({ data }) => pullProgress.parse(data));
    expect(progress[0]).toMatchObject({ replicaId: 'rep_1', endpointId: 'ep_01', completedBytes: 50, totalBytes: 100 });
    await world.run(2_000);
    const telemetry = world.signals.published.filter(({ subject }) => subject === 'tele.replica.rep_1').map(({ data }) => replicaTelemetry.parse(data));
    expect(telemetry.length).toBeGreaterThanOrEqual(2);
  });

  test('is given the devices it was placed on', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    await world.deploy();
    const gpu = world.fleet().nodes.get(agent.nodeId)?.accelerators[1]?.acceleratorId ?? '';
    await world.place('rep_1', agent.nodeId, [gpu]);
    await world.run(500);
    expect(world.machine.running[0]?.spec.device).toBe('GPU-1');
  });

  test('waits for a catalog that is behind, and leaves other nodes\' replicas alone', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    await world.place('rep_1', agent.nodeId);
    await world.place('rep_2', 'node_other');
    await world.run(3_000);
    expect(world.replica('rep_1')?.phase).toBe('placed');
    await world.deploy();
    await world.run(500);
    expect(world.replica('rep_1')?.phase).toBe('ready');
    expect(world.replica('rep_2')?.phase).toBe('placed');
  });

  test.each([['pull_failed'], ['digest_mismatch'], ['no_disk_space']] as const)('a pull that fails with %s fails the replica with that code, once', async (code) => {
    world = new AgentWorld();
    world.machine.onPull = pullFailure(code);
    const agent = await world.startAgent();
    await world.deploy();
    await world.place('rep_1', agent.nodeId);
    await world.run(5_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: code, failedInPhase: 'pulling', reason: `failed with ${code}` });
    expect(world.machine.engines).toHaveLength(0);
    expect(world.typesOf('rep_1').filter((type) => type === 'replica.failed.v1')).toHaveLength(1);
  });

  test('an engine that this node does not have is missing', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    await world.deploy('vllm');
    await world.place('rep_1', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'engine_missing' });
  });

  test('an engine that dies while it loads: its own words, or the damaged file where that is why', async () => {
    world = new AgentWorld();
    world.machine.onStart = async () => {
      throw new EngineStartError('engine_exited', 'the engine exited with code 1');
    };
    const agent = await world.startAgent();
    await world.deploy();
    await world.place('rep_1', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited', failedInPhase: 'loading' });
    world.machine.isIntact = false;
    await world.place('rep_2', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_2')).toMatchObject({ phase: 'failed', failureCode: 'digest_mismatch' });
    expect([world.machine.running.length, world.machine.held, world.machine.memory?.engines]).toEqual([0, 0, []]);
  });

  test('an engine that does not generate never becomes ready and is ended', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    await world.deploy();
    world.machine.onStart = async () => {
      const engine = world.machine.engines.at(-1);
      if (engine !== undefined) engine.answers = { kind: 'failed', reason: 'answered garbage' };
    };
    await world.place('rep_1', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'warm_up_failed', failedInPhase: 'warming', reason: 'answered garbage' });
    expect(world.machine.running).toHaveLength(0);
  });

  test('a drain in the middle of a pull gives the pull up and ends the replica', async () => {
    world = new AgentWorld();
    world.machine.onPull = (request) => new Promise((_, reject) => request.signal?.addEventListener('abort', () => reject(new Error('aborted')), { once: true }));
    const agent = await world.startAgent();
    await world.deploy();
    await world.place('rep_1', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_1')?.phase).toBe('pulling');
    await world.say('rep_1', { kind: 'start-drain', reason: 'not wanted' });
    await world.run(1_000);
    expect(world.replica('rep_1')?.phase).toBe('stopped');
    expect(world.machine.engines).toHaveLength(0);
  });
});

describe('draining', () => {
  test('waits until the engine is idle, then stops it', async () => {
    const { engine } = await aReadyReplica();
    engine.telemetry = { running: 1, waiting: 0, kvCacheUsage: 0, promptTokensTotal: 0, completionTokensTotal: 0 };
    await world.say('rep_1', { kind: 'start-drain', reason: 'scale down' });
    await world.run(10_000);
    expect([world.replica('rep_1')?.phase, engine.isRunning]).toEqual(['draining', true]);
    engine.telemetry = { ...engine.telemetry, running: 0 };
    await world.run(2_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'stopped', reason: 'drained' });
    expect([engine.wasAskedToStop, world.machine.held]).toEqual([true, 0]);
  });

  test('ends at its time-out, and says that requests were still running', async () => {
    const { engine } = await aReadyReplica({ REPLICA_DRAIN_TIMEOUT_MS: '3000' });
    engine.telemetry = { running: 1, waiting: 0, kvCacheUsage: 0, promptTokensTotal: 0, completionTokensTotal: 0 };
    await world.say('rep_1', { kind: 'start-drain', reason: 'scale down' });
    await world.run(5_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'stopped', reason: expect.stringContaining('still running') as unknown as string });
  });
});

describe('death', () => {
  test('of an engine is a failure with its reason', async () => {
    const { engine } = await aReadyReplica();
    engine.die('the engine was ended by SIGKILL');
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited', failedInPhase: 'ready', reason: 'the engine was ended by SIGKILL' });
    expect(world.machine.held).toBe(0);
  });

  test('of a replica in the log ends its engine', async () => {
    const { engine } = await aReadyReplica();
    await world.say('rep_1', { kind: 'fail', code: 'node_lost', reason: 'no heartbeat' });
    await world.run(500);
    expect([engine.isRunning, world.machine.memory?.engines]).toEqual([false, []]);
    expect(world.replica('rep_1')?.failureCode).toBe('node_lost');
  });

  test('an engine that is silent is asked, and ended only when it cannot answer', async () => {
    const { engine } = await aReadyReplica({ ENGINE_SILENT_TIMEOUT_MS: '5000' });
    engine.telemetry = undefined;
    await world.run(8_000);
    expect(world.replica('rep_1')?.phase).toBe('ready');
    engine.answers = { kind: 'failed', reason: 'no answer' };
    await world.run(8_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'unreachable' });
    expect(engine.isRunning).toBe(false);
  });

  test('an engine that answers and gets on with nothing is asked for a token, and ended only when it cannot give it', async () => {
    const { engine } = await aReadyReplica({ ENGINE_SILENT_TIMEOUT_MS: '5000' });
    const pace = { firstTokens: 1, firstTokenSeconds: 1, tokenGaps: 1, tokenGapSeconds: 1 };
    const stuck = { running: 2, waiting: 0, kvCacheUsage: 0.5, promptTokensTotal: 100, completionTokensTotal: 40, pace };
    engine.telemetry = stuck;
    await world.run(8_000);
    expect(world.replica('rep_1')?.phase).toBe('ready');
    engine.answers = { kind: 'failed', reason: 'no token came' };
    // It is not asked while it has nothing to do, while tokens come, or where tokens are counted at the end of an answer alone.
    engine.telemetry = { ...stuck, running: 0 };
    await world.run(8_000);
    engine.telemetry = { ...stuck, pace: null };
    await world.run(8_000);
    for (let tokens = 41; tokens < 49; tokens += 1) {
      engine.telemetry = { ...stuck, completionTokensTotal: tokens };
      await world.run(1_000);
    }
    expect(world.replica('rep_1')?.phase).toBe('ready');
    await world.run(8_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'unreachable', reason: 'The engine ran and did not generate: no token came' });
    expect(engine.isRunning).toBe(false);
  });

  test('while the log is away the engine goes on, and its death is said when the log is back', async () => {
    const { engine } = await aReadyReplica();
    world.switch.isAway = true;
    engine.die('died in the dark');
    await world.run(10_000);
    expect(world.replica('rep_1')?.phase).toBe('ready');
    world.switch.isAway = false;
    await world.run(3_000);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', reason: 'died in the dark' });
  });
});

describe('after a crash of the agent', () => {
  test('a running engine is taken over: no new event, telemetry goes on, its death is seen', async () => {
    const { agent, engine } = await aReadyReplica();
    const before = world.typesOf('rep_1');
    await world.crash(agent);
    await world.startAgent();
    await world.run(3_000);
    expect(world.typesOf('rep_1')).toEqual(before);
    expect([world.machine.running.length, engine.isRunning]).toEqual([1, true]);
    engine.die('later');
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', reason: 'later' });
  });

  test('an engine whose replica ended meanwhile is ended', async () => {
    const { agent, engine } = await aReadyReplica();
    await world.crash(agent);
    await world.say('rep_1', { kind: 'fail', code: 'node_lost', reason: 'no heartbeat' });
    await world.startAgent();
    expect([engine.isRunning, world.machine.memory?.engines]).toEqual([false, []]);
  });

  test('an engine that died meanwhile fails its replica', async () => {
    const { agent, engine } = await aReadyReplica();
    await world.crash(agent);
    engine.die('while nobody watched');
    await world.startAgent();
    await world.run(500);
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited' });
  });

  test('a start that was interrupted begins again, and its half-loaded engine is not left behind', async () => {
    world = new AgentWorld();
    const agent = await world.startAgent();
    await world.deploy();
    world.machine.onStart = () => new Promise(() => undefined);
    await world.place('rep_1', agent.nodeId);
    await world.run(500);
    expect(world.replica('rep_1')?.phase).toBe('loading');
    await world.crash(agent);
    world.machine.onStart = async () => undefined;
    await world.startAgent();
    await world.run(500);
    expect(world.replica('rep_1')?.phase).toBe('ready');
    expect(world.machine.running.map((engine) => engine.url)).toEqual([world.replica('rep_1')?.url]);
  });
});

describe('a graceful stop', () => {
  test('drains the replicas, stops the engines and says that the node left', async () => {
    const { agent, engine } = await aReadyReplica();
    const left = agent.drain();
    await world.run(3_000);
    await left;
    await agent.close();
    expect(world.replica('rep_1')).toMatchObject({ phase: 'stopped' });
    expect(world.fleet().nodes.get(agent.nodeId)).toMatchObject({ status: 'lost', statusReason: 'the agent was stopped' });
    expect([engine.isRunning, world.timers.size]).toEqual([false, 0]);
  });

  test('with engines kept, the next agent finds them warm', async () => {
    const { agent, engine } = await aReadyReplica({ AGENT_KEEP_ENGINES: 'true' });
    await agent.drain();
    await agent.close();
    await world.startAgent();
    await world.run(500);
    expect([world.replica('rep_1')?.phase, engine.isRunning, world.machine.engines.length]).toEqual(['ready', true, 1]);
  });
});

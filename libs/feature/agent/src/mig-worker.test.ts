import { afterEach, describe, expect, test } from '@jest/globals';
import { AgentWorld } from './agent-world-suite.js';
import { MIG_TRIES_MAX } from './mig-worker.js';
import type { RunningAgent } from './run-agent.js';

const DEVICE = 'GPU-2';
const STEPS = [{ kind: 'destroy', profile: '1g.10gb', start: 0 }, { kind: 'create', profile: '3g.40gb', start: 0 }] as const;

let world: AgentWorld;

afterEach(() => world.close());

const acceleratorOf = (agent: RunningAgent) => world.fleet().nodes.get(agent.nodeId)?.accelerators.find((one) => one.type === 'a100')?.acceleratorId ?? '';
const geometry = (agent: RunningAgent) => world.fleet().geometries.get(acceleratorOf(agent));
const typesOf = (agent: RunningAgent) => world.typesOf(acceleratorOf(agent));

/** An agent whose A100 has one small instance, and a replica that waits for a large one. */
async function aPlacedReplica(): Promise<RunningAgent> {
  world = new AgentWorld();
  world.hasMig = true;
  world.mig.instances.set(DEVICE, [{ profile: '1g.10gb', start: 0, uuid: 'MIG-old' }]);
  const agent = await world.startAgent();
  await world.deploy();
  await world.place('rep_1', agent.nodeId, [acceleratorOf(agent)], { profile: '3g.40gb', start: 0 });
  await world.run(100);
  return agent;
}

describe('a MIG change', () => {
  test('is taken step by step, and the replica starts on the new instance by its UUID', async () => {
    const agent = await aPlacedReplica();
    expect([world.replica('rep_1')?.phase, world.machine.engines.length]).toEqual(['placed', 0]);
    await world.planMig('rep_1', agent.nodeId, acceleratorOf(agent), STEPS);
    await world.run(500);
    expect(world.mig.taken).toEqual(['destroy 1g.10gb:0 on GPU-2', 'create 3g.40gb:0 on GPU-2']);
    expect(typesOf(agent)).toEqual(['mig.instance-created.v1', 'mig.change-planned.v1', 'mig.instance-destroyed.v1', 'mig.instance-created.v1', 'mig.change-ended.v1']);
    expect(geometry(agent)).toMatchObject({ change: null, lastEnd: { outcome: 'done' }, instances: [{ profile: '3g.40gb', start: 0, uuid: 'MIG-1' }] });
    expect([world.replica('rep_1')?.phase, world.machine.running[0]?.spec.device]).toEqual(['ready', 'MIG-1']);
  });

  test.each(['before', 'after'] as const)('goes on where an agent died %s a step, and takes none twice', async (when) => {
    for (const kind of ['destroy', 'create'] as const) {
      const agent = await aPlacedReplica();
      let isDead = false;
      const { mig } = world;
      const act = mig[kind].bind(mig);
      mig[kind] = async (device, place) => {
        if (when === 'after' && !isDead) await act(device, place);
        isDead = true;
        // Nothing after this is told: the process is gone.
        throw new Error('the agent died');
      };
      await world.planMig('rep_1', agent.nodeId, acceleratorOf(agent), STEPS);
      await world.run(300);
      expect(isDead).toBe(true);
      await world.crash(agent);
      mig[kind] = act;
      const next = await world.startAgent();
      await world.run(3_000);
      expect(mig.taken).toEqual(['destroy 1g.10gb:0 on GPU-2', 'create 3g.40gb:0 on GPU-2']);
      expect(geometry(next)).toMatchObject({ change: null, lastEnd: { outcome: 'done' }, instances: [{ profile: '3g.40gb', start: 0 }] });
      expect(world.replica('rep_1')?.phase).toBe('ready');
      await world.close();
    }
  });

  test('is given up when its replica ended meanwhile', async () => {
    const agent = await aPlacedReplica();
    await world.say('rep_1', { kind: 'stop', reason: 'not wanted any more' });
    await world.planMig('rep_1', agent.nodeId, acceleratorOf(agent), STEPS);
    await world.run(300);
    expect([world.mig.taken, geometry(agent)?.lastEnd?.outcome]).toEqual([[], 'abandoned']);
  });

  test('is tried again while the tool refuses, and fails with its words in the end', async () => {
    const agent = await aPlacedReplica();
    let refusals = 2;
    world.mig.onStep = async () => {
      refusals -= 1;
      if (refusals >= 0) throw new Error('In use by another client');
    };
    await world.planMig('rep_1', agent.nodeId, acceleratorOf(agent), STEPS);
    await world.run(10_000);
    expect([world.replica('rep_1')?.phase, geometry(agent)?.lastEnd?.outcome]).toEqual(['ready', 'done']);
    await world.close();
    const other = await aPlacedReplica();
    world.mig.onStep = async () => Promise.reject(new Error('In use by another client'));
    await world.planMig('rep_1', other.nodeId, acceleratorOf(other), STEPS);
    await world.run(MIG_TRIES_MAX * 2_500);
    expect(geometry(other)?.lastEnd).toMatchObject({ outcome: 'failed', reason: 'In use by another client' });
    expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', reason: 'its MIG instance could not be made: In use by another client' });
  });

  test('what somebody else changed is told when the agent starts', async () => {
    const agent = await aPlacedReplica();
    await world.crash(agent);
    world.mig.instances.set(DEVICE, [{ profile: '2g.20gb', start: 4, uuid: 'MIG-x' }]);
    const next = await world.startAgent();
    await world.run(300);
    expect(geometry(next)?.instances).toEqual([{ profile: '2g.20gb', start: 4, uuid: 'MIG-x' }]);
  });
});

test('a replica over several nodes is none of an agent\'s', async () => {
  world = new AgentWorld();
  const agent = await world.startAgent();
  await world.deploy();
  await world.placeGang('rep_1', [agent.nodeId, 'node_other']);
  await world.run(300);
  expect(world.replica('rep_1')).toMatchObject({ phase: 'failed', failureCode: 'engine_missing' });
});

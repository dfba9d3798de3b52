import { nodeHeartbeat } from '@penstock/contract-commands';
import { ReplicaAssignmentError } from '@penstock/domain-lifecycle';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DriverWorld } from './driver-world-suite.js';

let world: DriverWorld;

beforeEach(async () => {
  world = new DriverWorld();
  world.driver.setNode(world.node());
  await world.deploy(2);
  await world.start();
});

afterEach(() => world.stop());

describe('a driver of replicas', () => {
  test('takes a placement to ready, with every phase told once', async () => {
    await world.place('rep_01');
    await world.run(1_000);
    expect(world.typesOf('rep_01')).toEqual(['replica.placed.v2', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.ready.v1']);
    expect(world.replica('rep_01')).toMatchObject({ phase: 'ready', url: 'http://127.0.0.1:8000/rep_01', servedModel: 'smollm2-135m-instruct' });
  });

  test('lets a drained replica finish its requests, waits for budgets, and then stops it', async () => {
    await world.place('rep_01');
    await world.run(1_000);
    world.running = 1;
    world.driver.isHeld = true;
    await world.say('rep_01', { kind: 'start-drain', reason: 'a test' });
    await world.run(5_000);
    expect(world.driver.replicas()).toMatchObject([{ phase: 'serving' }]);
    world.running = 0;
    await world.run(5_000);
    expect(world.replica('rep_01')?.phase).toBe('draining');
    world.driver.isHeld = false;
    await world.run(5_000);
    expect(world.replica('rep_01')).toMatchObject({ phase: 'stopped', reason: 'drained' });
    expect(world.driver.replicas()).toEqual([]);
  });

  test('tells failures with their reason and clears away what is left', async () => {
    await world.place('rep_01');
    await world.run(1_000);
    world.driver.observe('rep_01', { phase: 'ended', end: { wasAsked: false, reason: 'exit code 137 (OOMKilled)' } });
    await world.run(200);
    expect(world.replica('rep_01')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited', reason: 'exit code 137 (OOMKilled)' });
    expect(world.driver.replicas()).toEqual([]);
  });

  test('a placement that can never work fails at once; an engine that cannot generate fails its warm-up', async () => {
    world.driver.refuses = new ReplicaAssignmentError('pull_failed', 'no Pod can fetch this');
    await world.place('rep_01');
    await world.run(200);
    expect(world.replica('rep_01')).toMatchObject({ phase: 'failed', failureCode: 'pull_failed', reason: 'no Pod can fetch this' });
    world.driver.refuses = undefined;
    world.warmUp = { kind: 'failed', reason: 'it hangs' };
    await world.place('rep_02');
    await world.run(1_000);
    expect(world.replica('rep_02')).toMatchObject({ phase: 'failed', failureCode: 'warm_up_failed' });
  });

  test('what was deleted behind its back fails after a grace, and is not made again', async () => {
    await world.place('rep_01');
    await world.run(1_000);
    world.driver.vanish('rep_01');
    await world.run(2_000);
    expect(world.replica('rep_01')?.phase).toBe('ready');
    await world.run(10_000);
    expect(world.replica('rep_01')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited' });
    expect(world.driver.started).toHaveLength(1);
  });

  test('goes on after a restart at any point and starts nothing twice', async () => {
    await world.place('rep_01');
    for (let restarts = 0; restarts < 6; restarts += 1) {
      await world.run(100);
      await world.stop();
      await world.start();
    }
    await world.run(3_000);
    expect(world.replica('rep_01')?.phase).toBe('ready');
    expect(world.driver.started).toHaveLength(1);
  });

  test('what belongs to no replica of the log is removed after a grace', async () => {
    await world.place('rep_01');
    await world.run(1_000);
    const [assignment] = world.driver.started;
    await world.driver.start({ ...assignment!, replicaId: 'rep_unknown' });
    await world.run(2_000);
    expect(world.driver.replicas()).toHaveLength(2);
    await world.run(8_000);
    expect(world.driver.replicas().map((seen) => seen.replicaId)).toEqual(['rep_01']);
  });

  test('keeps all wanted replicas but one through drains of others, and none in the way of its own', async () => {
    expect(world.driver.budgets).toEqual([{ endpointId: 'ep_01', availableMin: 1 }]);
    await world.place('rep_01');
    await world.run(1_000);
    expect(world.driver.budgets).toEqual([{ endpointId: 'ep_01', availableMin: 1 }]);
    world.running = 1;
    await world.say('rep_01', { kind: 'start-drain', reason: 'it gives way' });
    await world.run(200);
    expect(world.driver.budgets).toEqual([{ endpointId: 'ep_01', availableMin: 0 }]);
  });
});

describe('the nodes of a driver', () => {
  test('join, beat, change, and are lost after a grace', async () => {
    const beats: string[] = [];
    await world.signals.subscribe('tele.node.*', (data) => beats.push(nodeHeartbeat.parse(data).nodeId));
    expect(world.typesOf('node_sim_1')).toEqual(['node.joined.v2']);
    await world.run(4_000);
    expect(beats.length).toBeGreaterThanOrEqual(2);
    const node = world.node();
    world.driver.setNode({ ...node, report: { ...node.report, accelerators: [] } });
    await world.run(200);
    expect(world.fleet().nodes.get('node_sim_1')).toMatchObject({ status: 'up', accelerators: [] });
    world.driver.setNode(world.node('node_sim_1', { isReady: false, reason: 'its kubelet is silent' }));
    await world.run(2_000);
    expect(world.fleet().nodes.get('node_sim_1')?.status).toBe('up');
    await world.run(8_000);
    expect(world.fleet().nodes.get('node_sim_1')).toMatchObject({ status: 'lost', statusReason: 'its kubelet is silent' });
    beats.length = 0;
    await world.run(4_000);
    expect(beats).toEqual([]);
    world.driver.setNode(world.node());
    await world.run(200);
    expect(world.fleet().nodes.get('node_sim_1')?.status).toBe('up');
  });

  test('one that is taken out of the cluster has left; nodes of others are not touched', async () => {
    world.driver.dropNode('node_sim_1');
    await world.run(3_000);
    expect(world.typesOf('node_sim_1')).toEqual(['node.joined.v2', 'node.lost.v1']);
  });
});

import { announceReclaim, cordonNode, drainNode, uncordonNode } from '@penstock/contract-commands';
import { ExhaustiveOptimiser, MemorySignals } from '@penstock/testing-kit';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { schedulerConfig } from './config.js';
import { FakeAgent, FleetWorld, gpusOf, overcommittedBytes, slicesHeldTwice } from './fleet-world-suite.js';
import { runScheduling } from './run-scheduling.js';

const GB = 1_000_000_000;
const A100 = { type: 'a100', memoryBytes: 80_896 * 1_048_576, hasMig: true } as const;
const H100 = { type: 'h100', memoryBytes: 81_101 * 1_048_576 } as const;

let world: FleetWorld;

beforeEach(() => {
  world = new FleetWorld();
});

afterEach(() => world.close());

const scheduler: FleetWorld['scheduler'] = (...settings) => world.scheduler(...settings);

const places = () => world.living().map((replica) => `${replica.endpointId} on ${replica.members.map((member) => member.nodeId).join('+')} ${replica.phase}`).sort();

describe('an operator', () => {
  test('drains a node: one replica is ready elsewhere before another stops, and the node takes nothing until it is opened', async () => {
    await scheduler();
    for (const nodeId of ['n1', 'n2']) await FakeAgent.join(world, nodeId, GB);
    await world.deploy('ep_1', { maxReplicas: 2 });
    await world.want('ep_1', 2);
    await world.run(500);
    expect(places()).toEqual(['ep_1 on n1 ready', 'ep_1 on n2 ready']);
    expect(await world.commands.send(drainNode, { nodeId: 'n1', reason: 'upgrade' })).toMatchObject({ kind: 'ok', value: { node: { nodeId: 'n1', drainReason: 'upgrade', cordonReason: 'upgrade' } } });
    let ready = 2;
    for (let step = 0; step < 20; step += 1) {
      await world.run(50);
      ready = Math.min(ready, world.living().filter((replica) => replica.phase === 'ready').length);
    }
    expect([ready, places()]).toEqual([2, ['ep_1 on n2 ready', 'ep_1 on n2 ready']]);
    expect(world.eventsOf('replica.drain-started.v1')[0]?.data).toMatchObject({ reason: expect.stringContaining('is ready in its place') as unknown });
    expect(world.eventsOf('replica.placed.v2').at(-1)?.data).toMatchObject({ replaces: expect.stringMatching(/^rep/) as unknown, reason: { summary: expect.stringContaining('n1 drains: upgrade') as unknown } });
    await world.want('ep_1', 1);
    await world.run(300);
    await world.deploy('ep_2');
    await world.want('ep_2', 3);
    await world.run(500);
    expect(world.living('ep_2').map((replica) => replica.nodeId)).toEqual(['n2']);
    await world.commands.send(uncordonNode, { nodeId: 'n1', reason: 'done' });
    await world.run(500);
    expect(world.living('ep_2').map((replica) => replica.nodeId).sort()).toEqual(['n1', 'n1', 'n2']);
  });

  test('is told about a node that is not there, and sees a drain that cannot go on refused with its reason', async () => {
    await scheduler();
    expect(await world.commands.send(cordonNode, { nodeId: 'n9', reason: 'x' })).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'nodeId' } });
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(500);
    await world.commands.send(drainNode, { nodeId: 'n1', reason: 'upgrade' });
    await world.run(2_000);
    expect(places()).toEqual(['ep_1 on n1 ready']);
    expect(world.eventsOf('placement.refused.v2').map((event) => event.data)).toMatchObject([{ code: 'not_allowed', reason: expect.stringContaining('n1 drains: upgrade') as unknown }]);
  });

  test('announces that a node is taken back: its replicas move, or drain in time', async () => {
    await scheduler();
    await FakeAgent.join(world, 'n1', GB, { market: 'spot' });
    await world.deploy('ep_1');
    await world.rule('ep_1', { allowsSpot: true });
    await world.want('ep_1', 1);
    await world.run(500);
    expect(places()).toEqual(['ep_1 on n1 ready']);
    await world.commands.send(announceReclaim, { nodeId: 'n1', reason: 'two minutes of notice', inSeconds: 60 });
    await world.run(25_000);
    expect(places()).toEqual(['ep_1 on n1 ready']);
    await world.run(6_000);
    expect(places()).toEqual([]);
    await FakeAgent.join(world, 'n2', GB);
    await world.run(1_000);
    expect(places()).toEqual(['ep_1 on n2 ready']);
  });
});

describe('MIG', () => {
  async function slices(endpointId: string, migProfile: string, wanted: number): Promise<void> {
    await world.deploy(endpointId, { maxReplicas: 20 }, { hardware: { acceleratorType: 'a100', acceleratorCount: 1 } });
    await world.rule(endpointId, { migProfile });
    await world.want(endpointId, wanted);
  }

  test('instances are made for replicas, reused, taken away for others, and refused where none fits', async () => {
    await scheduler();
    await FakeAgent.join(world, 'n1', GB, gpusOf('n1', 1, A100));
    await slices('small', '1g.10gb', 3);
    await world.run(2_000);
    expect(places()).toEqual(Array(3).fill('small on n1 ready'));
    expect(world.fleet().geometries.get('acc_n1-0')?.instances.map(({ profile, start }) => `${profile}@${start}`)).toEqual(['1g.10gb@4', '1g.10gb@5', '1g.10gb@6']);
    await world.want('small', 0);
    await world.run(1_000);
    await slices('large', '4g.40gb', 2);
    await world.run(2_000);
    expect(places()).toEqual(['large on n1 ready']);
    expect(world.eventsOf('placement.refused.v2').at(-1)?.data).toMatchObject({ endpointId: 'large', code: 'no_room', hint: expect.stringContaining('no GPU can make room for 4g.40gb') as unknown });
    await world.want('large', 0);
    await world.run(1_000);
    await slices('whole', '7g.80gb', 1);
    await world.run(2_000);
    expect(places()).toEqual(['whole on n1 ready']);
    expect(world.eventsOf('mig.change-planned.v1').at(-1)?.data).toMatchObject({ steps: [{ kind: 'destroy' }, { kind: 'destroy' }, { kind: 'destroy' }, { kind: 'destroy' }, { kind: 'create', profile: '7g.80gb', start: 0 }] });
    expect(slicesHeldTwice(world.fleet())).toEqual([]);
  });

  test('what is in the way of a large instance moves first, make before break', async () => {
    await scheduler();
    for (const nodeId of ['n1', 'n2']) await FakeAgent.join(world, nodeId, GB, gpusOf(nodeId, 1, A100));
    await slices('small', '1g.10gb', 2);
    await world.run(2_000);
    expect(places()).toEqual(['small on n1 ready', 'small on n2 ready']);
    await slices('whole', '7g.80gb', 1);
    let ready = 2;
    for (let step = 0; step < 100; step += 1) {
      await world.run(50);
      ready = Math.min(ready, world.living('small').filter((replica) => replica.phase === 'ready').length);
      expect(slicesHeldTwice(world.fleet())).toEqual([]);
    }
    expect(ready).toBe(2);
    expect(world.living('whole')).toMatchObject([{ phase: 'ready' }]);
    expect(new Set(world.living('small').map((replica) => replica.nodeId)).size).toBe(1);
  });

  test('two schedulers that do not hear each other never lend a slice twice', async () => {
    world.networks.push(new MemorySignals());
    for (const network of world.networks) {
      const scheduling = await runScheduling(schedulerConfig.parse({}), { ...world.ports(network), timers: { after: (ms, call) => world.timers.after(ms, () => void call()), every: (ms, call) => world.timers.every(ms, () => void call()) } });
      world.closers.push(() => scheduling.close());
    }
    await FakeAgent.join(world, 'n1', GB, gpusOf('n1', 2, A100));
    await slices('mid', '3g.40gb', 3);
    await slices('small', '1g.10gb', 9);
    for (let step = 0; step < 40; step += 1) {
      await world.run(100);
      expect(slicesHeldTwice(world.fleet())).toEqual([]);
    }
    expect(world.living('mid')).toHaveLength(3);
    expect(world.living('small').length).toBeGreaterThanOrEqual(4);
    expect(world.living().every((replica) => replica.phase === 'ready')).toBe(true);
  });
});

describe('gangs', () => {
  test('are placed over all their nodes or none, and end with any of them', async () => {
    await scheduler();
    const agents = [];
    for (const nodeId of ['n1', 'n2', 'n3']) agents.push(await FakeAgent.join(world, nodeId, GB, { ...gpusOf(nodeId, 8, H100), failureDomain: 'rack-1' }));
    await world.deploy('big', { maxReplicas: 2 }, { hardware: { acceleratorType: 'h100', acceleratorCount: 8 } });
    await world.rule('big', { nodes: 2 });
    await world.want('big', 2);
    await world.run(1_000);
    expect(places()).toEqual(['big on n1+n2 ready']);
    expect(world.eventsOf('placement.refused.v2').at(-1)?.data).toMatchObject({ code: 'no_room', placedReplicas: 1 });
    agents[1]?.die();
    await world.run(14_000);
    expect(world.eventsOf('replica.failed.v1')[0]?.data).toMatchObject({ code: 'node_lost', reason: expect.stringContaining('n2') as unknown });
    expect(places()).toEqual(['big on n1+n3 ready']);
  });
});

describe('repacking', () => {
  test('empties a GPU when that saves more than the drains cost, and not before its time', async () => {
    await scheduler({ optimiser: new ExhaustiveOptimiser() }, { REPACK_INTERVAL_MS: '60000' });
    for (const nodeId of ['n1', 'n2']) await FakeAgent.join(world, nodeId, GB, gpusOf(nodeId, 1, H100));
    for (const endpointId of ['ep_1', 'ep_2']) await world.deploy(endpointId, {}, { hardware: { acceleratorType: 'h100', acceleratorCount: 1 } });
    await world.rule('ep_1', { pinnedNodeIds: ['n1'], computeMilli: 500 });
    await world.rule('ep_2', { pinnedNodeIds: ['n2'], computeMilli: 300 });
    for (const endpointId of ['ep_1', 'ep_2']) await world.want(endpointId, 1);
    await world.run(2_000);
    expect(places()).toEqual(['ep_1 on n1 ready', 'ep_2 on n2 ready']);
    expect(world.eventsOf('replica.placed.v2')[0]?.data).toMatchObject({ reason: { plan: { dollarsPerHour: expect.any(Number) as unknown } } });
    await world.rule('ep_2', { computeMilli: 300 });
    await world.run(50_000);
    expect(places()).toEqual(['ep_1 on n1 ready', 'ep_2 on n2 ready']);
    await world.run(15_000);
    expect(places()).toEqual(['ep_1 on n1 ready', 'ep_2 on n1 ready']);
    expect(world.eventsOf('replica.placed.v2').at(-1)?.data).toMatchObject({ replaces: expect.any(String) as unknown, reason: { summary: expect.stringContaining('empties a GPU') as unknown, plan: { lowerBoundDollarsPerHour: expect.any(Number) as unknown } } });
    expect(overcommittedBytes(world.fleet())).toBe(0);
  });

  test('the metrics tell the plan and its bound', async () => {
    const service = await scheduler();
    await FakeAgent.join(world, 'n1', GB, gpusOf('n1', 1, H100));
    await world.deploy('ep_1', {}, { hardware: { acceleratorType: 'h100', acceleratorCount: 1 } });
    await world.rule('ep_1', { computeMilli: 500 });
    await world.want('ep_1', 1);
    await world.run(1_000);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    for (const name of ['penstock_fleet_dollars_per_hour', 'penstock_fleet_lower_bound_dollars_per_hour', 'penstock_fleet_moving_replicas', 'penstock_fleet_mig_changes']) expect(metrics).toContain(name);
  });
});

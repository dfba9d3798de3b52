import { getFleet, wakeEndpoint } from '@penstock/contract-commands';
import { autoscalerConfig, startAutoscaler } from '@penstock/feature-autoscaler';
import { nodeDecider, nodeRef } from '@penstock/domain-lifecycle';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FakeAgent, FleetWorld } from './fleet-world-suite.js';

const GB = 1_000_000_000;

let world: FleetWorld;

beforeEach(() => {
  world = new FleetWorld();
});

afterEach(() => world.close());

const scheduler: FleetWorld['scheduler'] = (...settings) => world.scheduler(...settings);

async function autoscaler() {
  const service = await startAutoscaler(autoscalerConfig.parse({}), world.ports());
  world.closers.push(() => service.close());
  return service;
}

const phases = (endpointId?: string) => world.living(endpointId).map((replica) => `${replica.nodeId} ${replica.phase}`);

describe('scheduler and autoscaler together', () => {
  beforeEach(async () => {
    await scheduler();
    await autoscaler();
  });

  test('a deployed endpoint gets its floor, placed with a reason that traces back to the decision', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 1 });
    await world.run(500);
    expect(phases()).toEqual(['n1 ready']);
    const [wanted] = world.eventsOf('wanted-replicas.changed.v1');
    const [placed] = world.eventsOf('replica.placed.v2');
    expect(wanted).toMatchObject({ source: 'penstock/autoscaler', data: { from: 0, to: 1, rule: 'floor' } });
    expect(placed).toMatchObject({ source: 'penstock/scheduler', correlationId: wanted?.correlationId, causationId: wanted?.id });
    expect(placed?.data).toMatchObject({ reservedBytes: 400_000_000, reason: { summary: 'the only node that fits: 600 MB stay free on acc_n1 of n1' } });
  });

  test('a hundred requests at a sleeping endpoint wake it once', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 0, scaleToZeroAfterIdleSeconds: 60 });
    await world.run(2_000);
    expect(phases()).toEqual([]);
    const replies = await Promise.all(Array.from({ length: 100 }, () => world.commands.send(wakeEndpoint, { endpointId: 'ep_1', waiting: 1 })));
    expect(replies).toEqual(replies.map(() => ({ kind: 'ok', value: { wantedReplicas: 1 } })));
    await world.run(1_000);
    expect(world.eventsOf('wanted-replicas.changed.v1')).toHaveLength(1);
    expect(world.eventsOf('replica.placed.v2')).toHaveLength(1);
    expect(phases()).toEqual(['n1 ready']);
  });

  test('an idle endpoint goes to zero, and wakes on the node that has its artifacts', async () => {
    await FakeAgent.join(world, 'n1', 2 * GB);
    await world.deploy('ep_1', { minReplicas: 1, scaleToZeroAfterIdleSeconds: 30 });
    await world.run(500);
    const lastRequestAtMs = world.clock.now();
    const stopReports = world.timers.every(1_000, () => world.publish('tele.endpoint.ep_1', { endpointId: 'ep_1', sentAtMs: world.clock.now(), waiting: 0, running: 0, lastRequestAtMs }));
    await world.run(29_000);
    expect(phases()).toEqual(['n1 ready']);
    await world.run(3_000);
    expect(phases()).toEqual([]);
    expect(world.eventsOf('wanted-replicas.changed.v1').at(-1)?.data).toMatchObject({ from: 1, to: 0, rule: 'idle' });
    expect(world.eventsOf('replica.drain-started.v1')[0]?.data).toMatchObject({ reason: expect.stringContaining('no request for 3') as unknown });
    stopReports();
    await FakeAgent.join(world, 'n0', 2 * GB);
    await world.commands.send(wakeEndpoint, { endpointId: 'ep_1', waiting: 1 });
    await world.run(500);
    expect(phases()).toEqual(['n1 ready']);
  });

  test('a retired endpoint loses its replicas', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 2, maxReplicas: 2 });
    await world.run(500);
    expect(phases()).toEqual(['n1 ready', 'n1 ready']);
    await world.retire('ep_1');
    await world.run(500);
    expect(phases()).toEqual([]);
    expect(world.eventsOf('wanted-replicas.changed.v1').at(-1)?.data).toMatchObject({ to: 0, rule: 'retired' });
    expect(await world.commands.send(wakeEndpoint, { endpointId: 'ep_1', waiting: 1 })).toMatchObject({ kind: 'refused', refusal: { code: 'endpoint_not_found' } });
  });
});

describe('lost nodes', () => {
  test('what ran on a lost node is placed on another, and the node may come back', async () => {
    const first = await FakeAgent.join(world, 'n1', GB);
    await FakeAgent.join(world, 'n2', 2 * GB);
    await scheduler();
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(500);
    expect(phases()).toEqual(['n1 ready']);
    first.die();
    await world.run(9_000);
    expect(phases()).toEqual(['n1 ready']);
    await world.run(4_000);
    expect(phases()).toEqual(['n2 ready']);
    expect(world.eventsOf('node.lost.v1')[0]?.data).toMatchObject({ nodeId: 'n1', cause: 'missed-heartbeats' });
    expect(world.eventsOf('replica.failed.v1')[0]?.data).toMatchObject({ code: 'node_lost', phase: 'ready' });
    await first.come();
    await world.run(20_000);
    expect(world.fleet().nodes.get('n1')?.status).toBe('up');
    expect(world.eventsOf('node.lost.v1')).toHaveLength(1);
  });

  test('a scheduler that just started gives every node time to report', async () => {
    const agent = await FakeAgent.join(world, 'n1', GB);
    agent.die();
    await world.run(60_000);
    await scheduler();
    await world.run(9_500);
    expect(world.fleet().nodes.get('n1')?.status).toBe('up');
    await world.run(2_000);
    expect(world.fleet().nodes.get('n1')?.status).toBe('lost');
  });

  test('a scheduler that lost its broker declares nobody lost, and gives time again when it is back', async () => {
    const agent = await FakeAgent.join(world, 'n1', GB);
    let isCut = false;
    const [network] = world.networks;
    const signals = {
      publish: (subject: string, data: unknown) => (isCut ? undefined : network?.publish(subject, data)),
      subscribe: (subject: string, onMessage: (data: unknown, subject: string) => void) =>
        (network as NonNullable<typeof network>).subscribe(subject, (data, from) => (isCut ? undefined : onMessage(data, from))),
    };
    await scheduler({ signals });
    await world.run(5_000);
    isCut = true;
    await world.run(60_000);
    expect(world.eventsOf('node.lost.v1')).toHaveLength(0);
    isCut = false;
    await world.run(30_000);
    expect(world.eventsOf('node.lost.v1')).toHaveLength(0);
    agent.die();
    await world.run(13_000);
    expect(world.eventsOf('node.lost.v1')).toHaveLength(1);
  });
});

describe('starts that do not succeed', () => {
  test('a start that hangs fails with start_timeout and is tried again', async () => {
    const agent = await FakeAgent.join(world, 'n1', GB);
    agent.behaviour = 'hangs';
    await scheduler({}, { PLACED_TIMEOUT_MS: '5000' });
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(4_000);
    expect(phases()).toEqual(['n1 placed']);
    agent.behaviour = 'works';
    await world.run(6_000);
    expect(world.eventsOf('replica.failed.v1').map((event) => event.data)).toMatchObject([{ code: 'start_timeout', phase: 'placed' }]);
    expect(phases()).toEqual(['n1 ready']);
  });

  test('failing starts back off, are told after several, and stop counting once one works', async () => {
    const agent = await FakeAgent.join(world, 'n1', GB);
    agent.behaviour = 'fails';
    await scheduler();
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(40_000);
    const failedAt = world.eventsOf('replica.failed.v1').map((event) => Date.parse(event.time));
    const waits = failedAt.slice(1).map((atMs, index) => Math.floor((atMs - (failedAt[index] ?? 0)) / 1_000));
    expect(waits).toEqual([1, 2, 4, 8, 16]);
    expect(world.eventsOf('placement.refused.v2').map((event) => event.data)).toMatchObject([
      { code: 'start_backoff', reason: '5 starts failed in a row; the last one: engine_exited: exit code 1' },
      { code: 'start_backoff', reason: '6 starts failed in a row; the last one: engine_exited: exit code 1' },
    ]);
    agent.behaviour = 'works';
    await world.run(30_000);
    expect(phases()).toEqual(['n1 ready']);
    expect(world.fleet().refusals.size).toBe(0);
  });

  test('a refusal is told once, and the replica is placed when room appears', async () => {
    await FakeAgent.join(world, 'n1', 0.5 * GB);
    await scheduler();
    await world.deploy('ep_1');
    await world.want('ep_1', 2);
    await world.run(5_000);
    expect(phases()).toEqual(['n1 ready']);
    expect(world.eventsOf('placement.refused.v2').map((event) => event.data)).toMatchObject([{ code: 'no_memory', wantedReplicas: 2, placedReplicas: 1, candidates: [{ nodeId: 'n1' }] }]);
    await FakeAgent.join(world, 'n2', 0.5 * GB);
    await world.run(1_000);
    expect(phases()).toEqual(['n1 ready', 'n2 ready']);
  });
});

describe('a node that its owner announced to take back', () => {
  test('takes nothing new until then, and works again when it was not taken', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await scheduler();
    await world.handle(nodeDecider, nodeRef('n1'), { kind: 'announce-reclaim', reclaimAt: new Date(world.clock.now() + 5_000).toISOString(), reason: 'announced by its owner' });
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(10_000);
    expect(phases()).toEqual([]);
    await world.run(60_000);
    expect(phases()).toEqual(['n1 ready']);
  });
});

describe('the service', () => {
  test('answers where the fleet is from memory while the database is down', async () => {
    await FakeAgent.join(world, 'n1', GB);
    const down = () => Promise.reject(new Error('connection refused'));
    await scheduler({ queries: { nodes: down, replicas: down } });
    await world.deploy('ep_1');
    await world.want('ep_1', 1);
    await world.run(500);
    await world.want('ep_1', 0);
    await world.run(500);
    const living = await world.commands.send(getFleet, {});
    expect(living).toMatchObject({ kind: 'ok', value: { nodes: [{ nodeId: 'n1', status: 'up' }], replicas: [] } });
    const all = await world.commands.send(getFleet, { includeEnded: true });
    expect(all).toMatchObject({ kind: 'ok', value: { replicas: [{ phase: 'stopped', reason: 'drained', nodeId: 'n1' }] } });
  });

  test('serves health and metrics', async () => {
    const service = await scheduler();
    await FakeAgent.join(world, 'n1', GB);
    await world.run(100);
    expect((await fetch(`${service.url}/livez`)).status).toBe(200);
    expect(await (await fetch(`${service.url}/metrics`)).text()).toContain('penstock_fleet_nodes{status="up",service="scheduler"} 1');
  });
});

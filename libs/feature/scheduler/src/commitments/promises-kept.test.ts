import { makeReservation, releaseReservation } from '@penstock/contract-commands';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { schedulerConfig } from '../config.js';
import { FakeAgent, FleetWorld } from '../fleet-world-suite.js';
import { startScheduler } from '../start-scheduler.js';

const GB = 1_000_000_000;
const HOUR = 3_600_000;

let world: FleetWorld;

beforeEach(async () => {
  world = new FleetWorld();
  const service = await startScheduler(schedulerConfig.parse({}), world.ports());
  world.closers.push(() => service.close());
});

afterEach(() => world.close());

const running = (endpointId: string): number => world.living(endpointId).filter(({ phase }) => phase === 'ready').length;

/** Each replica takes 400 MB, so a node of 1 GB holds two. */
async function reserve(endpointId: string, replicas: number, part: { readonly from?: string; readonly to?: string; readonly priority?: number } = {}) {
  const reply = await world.commands.send(makeReservation, {
    level: { endpointId, organisationId: null, requestsPerS: 0, tokensPerS: 0, replicas, promptTokens: 1_000, completionTokens: 200, latencyClass: 'interactive', ttftMs: null, itlMs: null, priority: 500, gpuType: null, tolerates: 'nothing', from: null, to: null, ...part },
  });
  if (reply.kind !== 'ok' || reply.value.kind !== 'made') throw new Error(JSON.stringify(reply));
  return reply.value.reservation.reservationId;
}

async function tier(organisationId: string, priorityTier: 'reserved' | 'paid' | 'best-effort' | 'batch'): Promise<void> {
  await world.append({ context: 'access', aggregate: 'limits', id: organisationId }, {
    type: 'limits.set.v1', data: { subject: 'organisation', subjectId: organisationId, organisationId, model: null, limits: { requestsPerMinute: null, tokensPerMinute: null, concurrency: null, contextTokensMax: null, priorityTier } },
  });
}

describe('promises are kept', () => {
  test('a reserved endpoint has its floor whatever the autoscaler wants, and loses it when it is released', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 0 });
    await world.run(200);
    const reservationId = await reserve('ep_1', 2);
    await world.run(1_000);
    expect(running('ep_1')).toBe(2);
    await world.want('ep_1', 0);
    await world.run(1_000);
    expect(running('ep_1')).toBe(2);
    await world.commands.send(releaseReservation, { reservationId, reason: 'over' });
    await world.run(1_000);
    expect(running('ep_1')).toBe(0);
  });

  test('best effort gives way to a promise: drained, not killed, and only as much as is needed', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await FakeAgent.join(world, 'n2', GB);
    await world.deploy('ep_free', { minReplicas: 0 });
    await world.deploy('ep_sla', { minReplicas: 0 });
    await world.want('ep_free', 4);
    await world.run(1_000);
    expect(running('ep_free')).toBe(4);
    await reserve('ep_sla', 2);
    await world.run(3_000);
    expect([running('ep_sla'), running('ep_free')]).toEqual([2, 2]);
    expect(world.eventsOf('replica.drain-started.v1').map(({ data }) => (data as { reason: string }).reason)).toEqual(Array.from({ length: 2 }, () => 'it gives way to a promised replica of ep_sla'));
    expect(world.eventsOf('replica.failed.v1')).toEqual([]);
    const drains = world.eventsOf('replica.drain-started.v1').length;
    await world.run(10_000);
    expect(world.eventsOf('replica.drain-started.v1')).toHaveLength(drains);
  });

  test('a node that is lost takes nothing from a promise as long as there is anything else to take', async () => {
    const first = await FakeAgent.join(world, 'n1', GB);
    await FakeAgent.join(world, 'n2', GB);
    await world.deploy('ep_free', { minReplicas: 0 });
    await world.deploy('ep_sla', { minReplicas: 0 });
    await world.run(200);
    await reserve('ep_sla', 2);
    await world.want('ep_free', 2);
    await world.run(1_000);
    expect([running('ep_sla'), running('ep_free')]).toEqual([2, 2]);
    first.die();
    await world.run(20_000);
    expect([running('ep_sla'), running('ep_free')]).toEqual([2, 0]);
    expect(world.fleet().refusals.get('ep_free')).toMatchObject({ wantedReplicas: 2, code: 'no_memory' });
  });

  test('a promise begins before its time by as long as its replicas take to start, and ends by itself', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 0 });
    await world.run(200);
    const from = new Date(world.clock.now() + 10_000).toISOString();
    const to = new Date(world.clock.now() + 20_000).toISOString();
    await reserve('ep_1', 1, { from, to });
    await world.run(5_000);
    expect(running('ep_1')).toBe(0);
    await world.run(7_000);
    expect(running('ep_1')).toBe(1);
    await world.run(12_000);
    expect(running('ep_1')).toBe(0);
    expect(world.eventsOf('reservation.released.v1')).toMatchObject([{ data: { cause: 'expired' } }]);
  });

  test('an endpoint that is retired takes its promise with it', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 0 });
    await world.run(200);
    await reserve('ep_1', 1, { to: new Date(world.clock.now() + HOUR).toISOString() });
    await world.retire('ep_1');
    await world.run(2_000);
    expect(world.eventsOf('reservation.released.v1')).toMatchObject([{ data: { cause: 'endpoint-retired' } }]);
    expect(world.living('ep_1')).toEqual([]);
  });
});

describe('what is not promised is shared fairly', () => {
  test('between tenants by the weight of their tier, also when one was there first', async () => {
    for (const name of ['n1', 'n2', 'n3', 'n4', 'n5']) await FakeAgent.join(world, name, GB);
    await tier('org_paid', 'paid');
    await tier('org_free', 'best-effort');
    await world.deploy('ep_free', { minReplicas: 0 }, { organisationId: 'org_free' });
    await world.deploy('ep_paid', { minReplicas: 0 }, { organisationId: 'org_paid' });
    await world.want('ep_free', 10);
    await world.run(2_000);
    expect(running('ep_free')).toBe(10);
    await world.want('ep_paid', 10);
    await world.run(30_000);
    // Four to one of ten.
    expect([running('ep_paid'), running('ep_free')]).toEqual([8, 2]);
    const drains = world.eventsOf('replica.drain-started.v1').length;
    await world.run(20_000);
    expect(world.eventsOf('replica.drain-started.v1')).toHaveLength(drains);
    expect(drains).toBe(8);
  });

  test('endpoints of one tenant do not push each other out', async () => {
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1', { minReplicas: 0 });
    await world.deploy('ep_2', { minReplicas: 0 });
    await world.want('ep_1', 2);
    await world.run(1_000);
    await world.want('ep_2', 2);
    await world.run(3_000);
    expect([running('ep_1'), running('ep_2')]).toEqual([2, 0]);
    expect(world.eventsOf('replica.drain-started.v1')).toEqual([]);
  });
});

import { EventLogUnavailableError, type AppendRequest, type AppendResult, type EventLog, type Timers } from '@penstock/kernel';
import { MemorySignals } from '@penstock/testing-kit';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { schedulerConfig } from './config.js';
import { FakeAgent, FleetWorld, overcommittedBytes } from './fleet-world-suite.js';
import { runScheduling } from './run-scheduling.js';

const GB = 1_000_000_000;

/** What one replica of the world's endpoints reserves. */
const REPLICA_BYTES = 400_000_000;
const config = schedulerConfig.parse({});

/** Timers whose calls nobody awaits, so that two schedulers run at the same time. */
function unawaited(timers: Timers): Timers {
  return {
    after: (delayMs, call) => timers.after(delayMs, () => void call()),
    every: (intervalMs, call) => timers.every(intervalMs, () => void call()),
  };
}

/** Yields before each append, so that others get between a plan and its claim. */
function hesitant(log: EventLog): EventLog {
  return {
    load: (ref, after) => log.load(ref, after),
    read: (stream, options) => log.read(stream, options),
    tail: (stream, from, onBatch) => log.tail(stream, from, onBatch),
    bounds: (stream) => log.bounds(stream),
    append: async (request) => {
      await new Promise((resolve) => setImmediate(resolve));
      return log.append(request);
    },
  };
}

/** A log that fails for ever from its n-th append on; the n-th one is stored or not, as a crash may have it. */
class CrashingLog implements EventLog {
  appends = 0;

  constructor(private readonly log: EventLog, private readonly crashAt: number, private readonly isStored: boolean) {}

  readonly load: EventLog['load'] = (ref, after) => this.log.load(ref, after);
  readonly read: EventLog['read'] = (stream, options) => this.log.read(stream, options);
  readonly tail: EventLog['tail'] = (stream, from, onBatch) => this.log.tail(stream, from, onBatch);
  readonly bounds: EventLog['bounds'] = (stream) => this.log.bounds(stream);

  async append(request: AppendRequest): Promise<AppendResult> {
    this.appends += 1;
    if (this.appends === this.crashAt && this.isStored) await this.log.append(request);
    if (this.appends >= this.crashAt) throw new EventLogUnavailableError('the process died');
    return this.log.append(request);
  }
}

describe('two schedulers that do not hear each other', () => {
  test('never give the same memory away twice, and place everything that fits once', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }), fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }), async (nodes, wishes) => {
      const world = new FleetWorld();
      world.networks.push(new MemorySignals());
      for (const network of world.networks) {
        const scheduling = await runScheduling(config, { ...world.ports(network, hesitant(world.log)), timers: unawaited(world.timers) });
        world.closers.push(() => scheduling.close());
      }
      for (const [index, units] of nodes.entries()) await FakeAgent.join(world, `n${index}`, units * REPLICA_BYTES);
      for (const [index, wanted] of wishes.entries()) {
        await world.deploy(`ep_${index}`, { maxReplicas: 10 });
        await world.want(`ep_${index}`, wanted);
      }
      await world.run(3_000);
      const fleet = world.fleet();
      const capacity = nodes.reduce((sum, units) => sum + units, 0);
      const wantedTotal = wishes.reduce((sum, wanted) => sum + wanted, 0);
      expect(overcommittedBytes(fleet)).toBe(0);
      expect(fleet.ledger.pending.size).toBe(0);
      expect(world.living()).toHaveLength(Math.min(capacity, wantedTotal));
      expect(world.eventsOf('replica.placed.v2')).toHaveLength(Math.min(capacity, wantedTotal));
      await world.close();
    }), { numRuns: 25 });
  });

  test('of two that hear each other one acts, and the other takes over when it is gone', async () => {
    const world = new FleetWorld();
    const first = await runScheduling(config, world.ports());
    const second = await runScheduling(config, world.ports());
    await FakeAgent.join(world, 'n1', GB);
    await world.deploy('ep_1');
    await world.run(2_000);
    await first.close();
    await world.want('ep_1', 1);
    await world.run(1_000);
    expect(world.living()).toHaveLength(0);
    await world.run(4_000);
    expect(world.living()).toHaveLength(1);
    await second.close();
  });
});

describe('a scheduler that dies anywhere', () => {
  test('leaves nothing that the next one does not finish', async () => {
    for (const isStored of [true, false]) {
      for (let crashAt = 1; crashAt <= 12; crashAt += 1) {
        const world = new FleetWorld();
        const doomed = new CrashingLog(world.log, crashAt, isStored);
        const lost = await FakeAgent.join(world, 'n0', GB);
        for (const nodeId of ['n1', 'n2']) await FakeAgent.join(world, nodeId, GB);
        await world.deploy('ep_1', { maxReplicas: 3 });
        await world.deploy('ep_2', { maxReplicas: 3 });
        const first = await runScheduling(config, world.ports(world.networks[0], doomed));
        for (const endpointId of ['ep_1', 'ep_2']) await world.want(endpointId, 2);
        await world.run(1_000);
        await world.want('ep_2', 1);
        lost.die();
        await world.run(13_000);
        await first.close();
        const second = await runScheduling(config, world.ports());
        await world.run(15_000);
        const label = `crash at append ${crashAt} of ${doomed.appends}, ${isStored ? 'stored' : 'not stored'}`;
        expect([label, ...world.living().map((replica) => `${replica.endpointId} ${replica.phase}`).sort()]).toEqual([label, 'ep_1 ready', 'ep_1 ready', 'ep_2 ready']);
        expect([label, overcommittedBytes(world.fleet()), world.fleet().ledger.pending.size, world.fleet().nodes.get('n0')?.status]).toEqual([label, 0, 0, 'lost']);
        await second.close();
      }
    }
  });
});

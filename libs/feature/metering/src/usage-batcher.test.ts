import { describe, expect, test } from '@jest/globals';
import { usageRecordedV1 } from '@penstock/contract-events';
import { UsageStoreUnavailableError, type SequencedUsage, type UsageSink } from '@penstock/domain-usage';
import { silentLogger } from '@penstock/kernel';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import { Registry } from 'prom-client';
import { createUsageMetrics } from './metering-metrics.js';
import { UsageBatcher } from './usage-batcher.js';

const example = usageRecordedV1.schema.parse(usageRecordedV1.example);
const usage = (sequence: number, requestId = `req_${sequence}`): SequencedUsage => ({ sequence, record: { ...example, requestId } });

/** A store that can be away, and that finds records called `req_wrong` wrong. */
class FakeSink implements UsageSink {
  readonly inserts: number[][] = [];
  attempts = 0;
  isAway = false;

  write(records: readonly SequencedUsage[]): Promise<void> {
    this.attempts += 1;
    if (this.isAway) return Promise.reject(new UsageStoreUnavailableError('connection refused'));
    if (records.some(({ record }) => record.requestId === 'req_wrong')) return Promise.reject(new Error('cannot parse'));
    this.inserts.push(records.map((record) => record.sequence));
    return Promise.resolve();
  }
}

/** Lets what has begun come to rest before time passes, step by step. */
async function pass(timers: ManualTimers, steps: number, stepMs: number): Promise<void> {
  for (let step = 0; step < steps; step += 1) {
    await new Promise(setImmediate);
    await timers.advance(stepMs);
  }
  await new Promise(setImmediate);
}

function setUp() {
  const sink = new FakeSink();
  const timers = new ManualTimers(new FixedClock());
  const batcher = new UsageBatcher({ sink, timers, logger: silentLogger, metrics: createUsageMetrics(new Registry()), flushRecords: 3, flushDelayMs: 200 });
  return { sink, timers, batcher };
}

describe('the usage batcher', () => {
  test('stores what came within the delay in one insert, and settles each record after it', async () => {
    const { sink, timers, batcher } = setUp();
    const stored = Promise.all([batcher.add(usage(1)), batcher.add(usage(2))]);
    expect(sink.attempts).toBe(0);
    await timers.advance(200);
    await stored;
    expect(sink.inserts).toEqual([[1, 2]]);
  });

  test('does not wait once an insert is full, and keeps inserts at that size', async () => {
    const { sink, timers, batcher } = setUp();
    const stored = Promise.all([1, 2, 3, 4, 5, 6, 7].map((sequence) => batcher.add(usage(sequence))));
    await Promise.all([batcher.add(usage(1)), batcher.add(usage(6))]);
    expect(sink.inserts).toEqual([[1, 2, 3], [4, 5, 6]]);
    await pass(timers, 1, 200);
    await stored;
    expect(sink.inserts).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  });

  test('while the store is away records wait, redelivered ones join them, and all are stored once when it returns', async () => {
    const { sink, timers, batcher } = setUp();
    sink.isAway = true;
    const stored = [1, 2, 3, 4].map((sequence) => batcher.add(usage(sequence)));
    await pass(timers, 20, 60_000);
    expect(sink.attempts).toBeGreaterThan(10);
    expect(batcher.check()).toBe('The store of usage is not available: connection refused 4 records wait.');
    stored.push(batcher.add(usage(2)));
    sink.isAway = false;
    await pass(timers, 2, 10_000);
    await Promise.all(stored);
    expect(sink.inserts).toEqual([[1, 2, 3], [4]]);
    expect(batcher.check()).toBeUndefined();
  });

  test('records of one event are told apart, and one that comes again joins the one that waits', async () => {
    const { sink, timers, batcher } = setUp();
    const stored = Promise.all([batcher.add(usage(1, 'req_a')), batcher.add(usage(1, 'req_b')), batcher.add(usage(1, 'req_a'))]);
    await timers.advance(200);
    await stored;
    expect(sink.inserts).toEqual([[1, 1]]);
  });

  test('a record that the store calls wrong is rejected alone', async () => {
    const { sink, batcher } = setUp();
    const results = await Promise.allSettled([batcher.add(usage(1)), batcher.add(usage(2, 'req_wrong')), batcher.add(usage(3))]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(sink.inserts).toEqual([[1], [3]]);
  });

  test('drains at once; with the store away it hands the records back', async () => {
    const { sink, batcher } = setUp();
    const stored = batcher.add(usage(1));
    await batcher.drain();
    await stored;
    expect(sink.inserts).toEqual([[1]]);
    sink.isAway = true;
    await expect(batcher.add(usage(2))).rejects.toBeInstanceOf(UsageStoreUnavailableError);
  });

  test('a drain ends the wait for a store that is away', async () => {
    const { sink, timers, batcher } = setUp();
    sink.isAway = true;
    const results = Promise.allSettled([batcher.add(usage(1)), batcher.add(usage(2))]);
    await pass(timers, 1, 1_000);
    await batcher.drain();
    expect((await results).map((result) => result.status)).toEqual(['rejected', 'rejected']);
  });
});

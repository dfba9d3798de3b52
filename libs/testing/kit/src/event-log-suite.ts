import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AggregateRef, AppendRequest, EventLog, RecordedEvent } from '@penstock/kernel';
import fc from 'fast-check';

export interface EventLogUnderTest {
  readonly log: EventLog;
  close(): Promise<void>;
}

const RUNS = 25;

/** What every event log does. `open` gives an empty one. */
export function eventLogSuite(name: string, open: () => Promise<EventLogUnderTest>): void {
  describe(`event log: ${name}`, () => {
    let subject: EventLogUnderTest;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.close());
    const log = (): EventLog => subject.log;

    appendTests(log);
    loadTests(log);
    readTests(log);
    tailTests(log);
    modelTest(log);
  });
}

let freshCount = 0;

function freshRef(): AggregateRef {
  freshCount += 1;
  return { context: 'access', aggregate: 'api-key', id: `key_${freshCount}` };
}

/** An append of `count` events to an aggregate, each with its own reason. */
function request(ref: AggregateRef, expected: AppendRequest['expected'], commandId: string, count = 1): AppendRequest {
  const events = Array.from({ length: count }, (_, index) => ({ type: 'api-key.revoked.v1', data: { keyId: ref.id, reason: `${commandId}/${index}` } }));
  return { ref, events, expected, commandId, source: 'penstock/test', nowMs: Date.UTC(2_026, 10, 29), correlationId: 'cor_1', causationId: commandId };
}

async function appended(log: EventLog, append: AppendRequest): Promise<number> {
  const result = await log.append(append);
  if (result.kind !== 'appended') throw new Error(`conflict at ${result.actual}`);
  return result.lastSequence;
}

function reasons(events: readonly RecordedEvent[]): string[] {
  return events.map((event) => (event.data as { reason: string }).reason);
}

async function collect(batches: AsyncIterable<readonly RecordedEvent[]>): Promise<RecordedEvent[]> {
  const all: RecordedEvent[] = [];
  for await (const batch of batches) all.push(...batch);
  return all;
}

function appendTests(log: () => EventLog): void {
  test('an event comes back whole', async () => {
    const ref = freshRef();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const sequence = await appended(log(), { ...request(ref, 0, 'cmd_whole'), traceparent });
    expect(await log().load(ref)).toEqual([{
      id: 'cmd_whole.0', type: 'api-key.revoked.v1', data: { keyId: ref.id, reason: 'cmd_whole/0' }, source: 'penstock/test', time: '2026-11-29T00:00:00.000Z',
      correlationId: 'cor_1', causationId: 'cmd_whole', traceparent, ref, stream: 'EV_ACCESS', sequence,
    }]);
  });

  test('a writer that is behind gets a conflict with the actual sequence, and stores nothing', async () => {
    const ref = freshRef();
    const first = await appended(log(), request(ref, 0, 'cmd_a'));
    expect(await log().append(request(ref, 0, 'cmd_b'))).toEqual({ kind: 'conflict', actual: first });
    expect(await log().append(request(ref, 0, 'cmd_c', 3))).toEqual({ kind: 'conflict', actual: first });
    expect(await log().append(request(ref, first + 1_000_000, 'cmd_d'))).toMatchObject({ kind: 'conflict' });
    expect(reasons(await log().load(ref))).toEqual(['cmd_a/0']);
  });

  test.each([1, 3])('a retry of the same command with %d events stores nothing twice', async (count) => {
    const ref = freshRef();
    const last = await appended(log(), request(ref, 0, 'cmd_retry', count));
    expect(await log().append(request(ref, 0, 'cmd_retry', count))).toEqual({ kind: 'appended', lastSequence: last, duplicate: true });
    await appended(log(), request(ref, last, 'cmd_other'));
    expect(await log().append(request(ref, 0, 'cmd_retry', count))).toMatchObject({ kind: 'appended', duplicate: true });
    expect(await log().load(ref)).toHaveLength(count + 1);
  });

  test('a retry without an expectation stores nothing twice either', async () => {
    const ref = freshRef();
    await appended(log(), request(ref, 'any', 'cmd_any', 2));
    await appended(log(), request(ref, 'any', 'cmd_any_1'));
    expect(await log().append(request(ref, 'any', 'cmd_any', 2))).toMatchObject({ kind: 'appended', duplicate: true });
    expect(await log().append(request(ref, 'any', 'cmd_any_1'))).toMatchObject({ kind: 'appended', duplicate: true });
    expect(await log().load(ref)).toHaveLength(3);
  });

  test('one command may write to two aggregates', async () => {
    const [left, right] = [freshRef(), freshRef()];
    expect(await log().append(request(left, 0, 'cmd_both'))).toMatchObject({ kind: 'appended', duplicate: false });
    expect(await log().append(request(right, 0, 'cmd_both'))).toMatchObject({ kind: 'appended', duplicate: false });
    expect(await log().load(right)).toHaveLength(1);
  });

  test('of many writers with the same expectation exactly one wins', async () => {
    const ref = freshRef();
    const results = await Promise.all(Array.from({ length: 20 }, (_, index) => log().append(request(ref, 0, `cmd_race_${index}`, 1 + (index % 3)))));
    const winners = results.flatMap((result, index) => (result.kind === 'appended' ? [index] : []));
    expect(winners).toHaveLength(1);
    const events = await log().load(ref);
    expect(new Set(events.map((event) => event.causationId))).toEqual(new Set([`cmd_race_${winners[0]}`]));
    expect(events).toHaveLength(1 + ((winners[0] ?? 0) % 3));
  });

  test('an event that breaks its contract, an unknown type and a foreign context are refused', async () => {
    const ref = freshRef();
    const base = request(ref, 0, 'cmd_bad');
    await expect(log().append({ ...base, events: [{ type: 'api-key.revoked.v1', data: { keyId: 'not an id', reason: '' } }] })).rejects.toThrow(/api-key\.revoked\.v1 does not match/);
    await expect(log().append({ ...base, events: [{ type: 'api-key.painted.v1', data: {} }] })).rejects.toThrow(/no contract/);
    await expect(log().append({ ...base, ref: { ...ref, context: 'usage' } })).rejects.toThrow(/belongs to context access/);
    await expect(log().append({ ...base, events: [] })).rejects.toThrow(/1 to 500/);
    expect(await log().load(ref)).toEqual([]);
  });
}

function loadTests(log: () => EventLog): void {
  test('load gives one aggregate only, in order, after a known sequence', async () => {
    const [ref, other] = [freshRef(), freshRef()];
    const first = await appended(log(), request(ref, 0, 'cmd_1', 2));
    await appended(log(), request(other, 0, 'cmd_2'));
    await appended(log(), request(ref, first, 'cmd_3'));
    expect(reasons(await log().load(ref))).toEqual(['cmd_1/0', 'cmd_1/1', 'cmd_3/0']);
    expect(reasons(await log().load(ref, first))).toEqual(['cmd_3/0']);
  });

  test('an aggregate that does not exist is empty', async () => {
    expect(await log().load(freshRef())).toEqual([]);
  });
}

function readTests(log: () => EventLog): void {
  test('read gives batches of a range and stops at what was the end', async () => {
    const ref = freshRef();
    const { lastSequence: before } = await log().bounds('EV_ACCESS');
    const last = await appended(log(), request(ref, 0, 'cmd_read', 10));
    expect((await log().bounds('EV_ACCESS')).lastSequence).toBe(last);
    const all = await collect(log().read('EV_ACCESS', { fromSequence: before + 1 }));
    expect(all.map((event) => event.sequence)).toEqual(Array.from({ length: 10 }, (_, index) => before + 1 + index));
    const some = await collect(log().read('EV_ACCESS', { fromSequence: before + 3, toSequence: before + 5 }));
    expect(reasons(some)).toEqual(['cmd_read/2', 'cmd_read/3', 'cmd_read/4']);
    for await (const batch of log().read('EV_ACCESS', { fromSequence: before + 1, batchSize: 3 })) expect(batch.length).toBeLessThanOrEqual(3);
    expect(await collect(log().read('EV_ACCESS', { fromSequence: last + 1 }))).toEqual([]);
  });

  test('an empty stream has bounds 1 and 0 and nothing to read', async () => {
    expect(await log().bounds('EV_BILLING')).toEqual({ firstSequence: 1, lastSequence: 0 });
    expect(await collect(log().read('EV_BILLING'))).toEqual([]);
  });

  test('a reader may stop early', async () => {
    await appended(log(), request(freshRef(), 0, 'cmd_early', 5));
    let batches = 0;
    for await (const batch of log().read('EV_ACCESS', { batchSize: 1 })) {
      expect(batch).toHaveLength(1);
      batches += 1;
      if (batches === 2) break;
    }
    expect(batches).toBe(2);
  });
}

function tailTests(log: () => EventLog): void {
  test('tail gives what is there and what comes, in order, once, and tells its position', async () => {
    const ref = freshRef();
    const first = await appended(log(), request(ref, 0, 'cmd_old', 3));
    const seen: number[] = [];
    let position = 0;
    const reached = new Reached();
    const subscription = await log().tail('EV_ACCESS', first - 2, (events, through) => {
      seen.push(...events.map((event) => event.sequence));
      position = through;
      reached.at(through);
    });
    const last = await appended(log(), request(ref, first, 'cmd_new', 2));
    await reached.until(last);
    expect(seen).toEqual([first - 2, first - 1, first, first + 1, first + 2]);
    expect(position).toBe(last);
    await subscription.close();
    await appended(log(), request(ref, last, 'cmd_after_close'));
    expect(seen).toHaveLength(5);
  });

  test('a tail from beyond the end waits for that position', async () => {
    const ref = freshRef();
    const first = await appended(log(), request(ref, 0, 'cmd_beyond'));
    const seen: number[] = [];
    const reached = new Reached();
    const subscription = await log().tail('EV_ACCESS', first + 2, (events, through) => {
      seen.push(...events.map((event) => event.sequence));
      reached.at(through);
    });
    await appended(log(), request(ref, first, 'cmd_beyond_2', 3));
    await reached.until(first + 3);
    expect(seen).toEqual([first + 2, first + 3]);
    await subscription.close();
  });

  test('a handler that rejects gets the same batch again', async () => {
    const ref = freshRef();
    const { lastSequence } = await log().bounds('EV_ACCESS');
    const calls: number[][] = [];
    const reached = new Reached();
    const subscription = await log().tail('EV_ACCESS', lastSequence + 1, (events, through) => {
      calls.push(events.map((event) => event.sequence));
      if (calls.length < 3) throw new Error('the database is away');
      reached.at(through);
    });
    const last = await appended(log(), request(ref, 0, 'cmd_again', 1));
    await reached.until(last);
    await subscription.close();
    expect(calls).toEqual([[last], [last], [last]]);
  });
}

/** Random appends against a simple model: sequences, versions and contents agree after every step. */
function modelTest(log: () => EventLog): void {
  test('random appends agree with a model', async () => {
    const step = fc.record({ aggregate: fc.nat({ max: 2 }), count: fc.integer({ min: 1, max: 3 }), isBehind: fc.boolean(), isRetry: fc.boolean() });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        run += 1;
        const refs = [freshRef(), freshRef(), freshRef()];
        const model = refs.map(() => ({ reasons: [] as string[], last: 0, before: 0 }));
        for (const [index, { aggregate, count, isBehind, isRetry }] of steps.entries()) {
          const [ref, expectedState] = [refs[aggregate], model[aggregate]];
          if (ref === undefined || expectedState === undefined) continue;
          const commandId = `cmd_model_${run}_${index}`;
          const isStale = isBehind && expectedState.last > 0;
          const append = request(ref, isStale ? expectedState.before : expectedState.last, commandId, count);
          const result = await log().append(append);
          expect(result.kind).toBe(isStale ? 'conflict' : 'appended');
          if (result.kind === 'conflict') continue;
          expectedState.before = expectedState.last;
          expectedState.last = result.lastSequence;
          expectedState.reasons.push(...append.events.map((_, position) => `${commandId}/${position}`));
          if (isRetry) expect(await log().append(append)).toEqual({ kind: 'appended', lastSequence: result.lastSequence, duplicate: true });
        }
        for (const [index, ref] of refs.entries()) expect(reasons(await log().load(ref))).toEqual(model[index]?.reasons);
      }),
      { numRuns: RUNS },
    );
  });
}

/** Lets a test await a position instead of polling for it. */
class Reached {
  private position = 0;
  private waiting: { readonly sequence: number; readonly resolve: () => void } | undefined;

  at(sequence: number): void {
    this.position = sequence;
    if (this.waiting !== undefined && sequence >= this.waiting.sequence) this.waiting.resolve();
  }

  until(sequence: number): Promise<void> {
    if (this.position >= sequence) return Promise.resolve();
    return new Promise((resolve) => (this.waiting = { sequence, resolve }));
  }
}

import { describe, expect, test } from '@jest/globals';
import { MemoryEventLog, MemorySnapshotStore } from '@penstock/testing-kit';
import fc from 'fast-check';
import type { BatchHandler, RecordedEvent, StreamBounds, Subscription } from './event-log.js';
import { followProjection } from './follow-projection.js';
import type { Projection } from './projection.js';

interface Seen {
  readonly reasons: string[];
}

/** Not idempotent on purpose: an event applied twice, or out of order, shows. */
const projection: Projection<Seen> = {
  name: 'seen',
  version: 1,
  streams: ['EV_ACCESS', 'EV_REGISTRY'],
  initialState: () => ({ reasons: [] }),
  apply: (state, event) => {
    const { reason } = event.data as { reason: string };
    if (reason === 'poison') throw new Error('cannot apply');
    state.reasons.push(reason);
    return state;
  },
  snapshot: (state) => state,
  restore: (snapshot) => ({ reasons: [...(snapshot as Seen).reasons] }),
};

let commands = 0;

async function append(log: MemoryEventLog, reason: string, stream: 'access' | 'registry' = 'access'): Promise<number> {
  commands += 1;
  const event = stream === 'access' ? { type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason } } : { type: 'endpoint.retired.v1', data: { endpointId: 'ep_1', reason } };
  const result = await log.append({ ref: { context: stream, aggregate: 'thing', id: 'thing_1' }, events: [event], expected: 'any', commandId: `cmd_${commands}`, source: 'penstock/test', nowMs: 0, correlationId: 'c', causationId: 'c' });
  return result.kind === 'appended' ? result.lastSequence : 0;
}

describe('following a projection', () => {
  test('starts with everything that stands in its streams, then follows', async () => {
    const log = new MemoryEventLog();
    await append(log, 'a');
    await append(log, 'r', 'registry');
    const live = await followProjection(log, projection);
    expect([...live.state().reasons].sort()).toEqual(['a', 'r']);
    let changes = 0;
    const stop = live.onChange(() => (changes += 1));
    await live.waitFor('EV_ACCESS', await append(log, 'b'));
    expect(live.state().reasons).toContain('b');
    expect(live.positions()).toEqual({ EV_ACCESS: 2, EV_REGISTRY: 1 });
    expect(changes).toBe(1);
    stop();
    await live.waitFor('EV_ACCESS', await append(log, 'c'));
    expect(changes).toBe(1);
    await live.close();
  });

  test('an event that cannot be applied is reported and passed over', async () => {
    const log = new MemoryEventLog();
    for (const reason of ['a', 'poison', 'b']) await append(log, reason);
    const poison: number[] = [];
    const live = await followProjection(log, projection, { onPoison: (event) => poison.push(event.sequence) });
    expect(live.state().reasons).toEqual(['a', 'b']);
    expect(poison).toEqual([2]);
    await live.close();
  });

  test('a snapshot saves the replay, unless it is of another version or from beyond the log', async () => {
    const log = new MemoryEventLog();
    const snapshots = new MemorySnapshotStore();
    for (const reason of ['a', 'b', 'c']) await append(log, reason);
    await (await followProjection(log, projection, { snapshots, snapshotEveryEvents: 2 })).close();
    const stored = await snapshots.load('seen');
    expect(stored?.positions).toEqual({ EV_ACCESS: 3 });

    const applied: number[] = [];
    const counting: Projection<Seen> = {
      ...projection,
      apply: (state, event) => {
        applied.push(event.sequence);
        return projection.apply(state, event);
      },
    };
    await append(log, 'd');
    const fromSnapshot = await followProjection(log, counting, { snapshots });
    expect(fromSnapshot.state().reasons).toEqual(['a', 'b', 'c', 'd']);
    expect(applied.splice(0)).toEqual([4]);
    const newVersion = await followProjection(log, { ...counting, version: 2 }, { snapshots });
    expect(applied.splice(0)).toEqual([1, 2, 3, 4]);
    const other = new MemoryEventLog();
    await append(other, 'x');
    const otherLog = await followProjection(other, counting, { snapshots });
    expect(otherLog.state().reasons).toEqual(['x']);
    await Promise.all([fromSnapshot.close(), newVersion.close(), otherLog.close()]);
  });

  test('does not wait for what the log skipped or no longer has', async () => {
    const skipping = new MemoryEventLog();
    await append(skipping, 'a');
    skipping.tail = async (_stream, _from, onBatch: BatchHandler): Promise<Subscription> => {
      await onBatch([], 1);
      return { close: () => Promise.resolve() };
    };
    const afterSkipped = await followProjection(skipping, projection);
    expect(afterSkipped.positions()).toEqual({ EV_ACCESS: 1, EV_REGISTRY: 1 });

    const trimmed = new MemoryEventLog();
    trimmed.bounds = (): Promise<StreamBounds> => Promise.resolve({ firstSequence: 8, lastSequence: 7 });
    const afterTrimmed = await followProjection(trimmed, projection);
    expect(afterTrimmed.state().reasons).toEqual([]);
    await Promise.all([afterSkipped.close(), afterTrimmed.close()]);
  });

  test('any cut into batches, any redelivery and any restarts give the same state', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('restart' as const), snapshotEvery: fc.integer({ min: 1, max: 6 }) }),
    );
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 15 }), fc.infiniteStream(fc.nat({ max: 4 })), async (steps, sizes) => {
      const log = new ChoppedLog(sizes);
      const snapshots = new MemorySnapshotStore();
      const single: Projection<Seen> = { ...projection, streams: ['EV_ACCESS'] };
      const expected: string[] = [];
      let live = await followProjection(log, single, { snapshots, snapshotEveryEvents: 3 });
      for (const current of steps) {
        if (current.kind === 'append') {
          for (let index = 0; index < current.count; index += 1) {
            expected.push(`reason ${expected.length}`);
            await append(log, expected.at(-1) ?? '');
          }
        } else {
          await live.close();
          live = await followProjection(log, single, { snapshots, snapshotEveryEvents: current.snapshotEvery });
          expect(live.state().reasons).toEqual(expected);
        }
      }
      await live.waitFor('EV_ACCESS', expected.length);
      await live.close();
      expect(live.state().reasons).toEqual(expected);
    }));
  });
});

/** Delivers in batches of arbitrary sizes, and some events again, as an at-least-once source may. */
class ChoppedLog extends MemoryEventLog {
  private readonly sizes: Iterator<number>;

  constructor(sizes: Iterable<number>) {
    super();
    this.sizes = sizes[Symbol.iterator]();
  }

  override tail(stream: 'EV_ACCESS', fromSequence: number, onBatch: BatchHandler): Promise<Subscription> {
    return super.tail(stream, fromSequence, async (events) => {
      for (let start = 0; start < events.length; ) {
        const again = Math.min(start, this.size());
        const end = Math.min(events.length, start + 1 + this.size());
        const batch: readonly RecordedEvent[] = events.slice(start - again, end);
        await onBatch(batch, batch.at(-1)?.sequence ?? 0);
        start = end;
      }
    });
  }

  private size(): number {
    const next = this.sizes.next();
    return next.done === true ? 0 : next.value;
  }
}

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assessFailures, backoffMs, BACKOFF_MAX_MS, STABLE_AFTER_MS, type StartAttempt } from './start-backoff.js';

const failedAt = (endedAtMs: number, readyAtMs: number | null = null, nodeId = 'n1', placedAtMs = endedAtMs - 1): StartAttempt => ({ nodeId, placedAtMs, readyAtMs, endedAtMs, failure: 'engine_exited: signal' });
const living = (readyAtMs: number | null): StartAttempt => ({ nodeId: 'n1', placedAtMs: 0, readyAtMs, endedAtMs: null, failure: null });

describe('the wait after failed starts', () => {
  test('doubles with each failure in a row and is capped', () => {
    expect([0, 1, 2, 3, 9].map(backoffMs)).toEqual([0, 1_000, 2_000, 4_000, 256_000]);
    fc.assert(fc.property(fc.nat(10_000), (failures) => {
      expect(backoffMs(failures)).toBeLessThanOrEqual(BACKOFF_MAX_MS);
      expect(backoffMs(failures + 1)).toBeGreaterThanOrEqual(backoffMs(failures));
    }));
  });

  test('counts from the newest failure, and per node', () => {
    const { backoff, failuresByNode } = assessFailures([failedAt(1_000), failedAt(5_000, null, 'n2'), failedAt(3_000)], 6_000);
    expect(backoff).toEqual({ failuresInRow: 3, retryAtMs: 9_000, lastFailure: 'engine_exited: signal' });
    expect([...failuresByNode]).toEqual([['n1', 2], ['n2', 1]]);
  });

  test('counts what died together once, for nothing of it was a second attempt', () => {
    const together = Array.from({ length: 8 }, (_, index) => failedAt(5_000 + index, 2_000, 'n1', 100));
    expect(assessFailures(together, 5_500)).toEqual({ backoff: { failuresInRow: 1, retryAtMs: 6_007, lastFailure: 'engine_exited: signal' }, failuresByNode: new Map([['n1', 8]]) });
    expect(assessFailures([...together, failedAt(7_000, null, 'n2', 6_100)], 7_500).backoff?.failuresInRow).toBe(2);
  });

  test('is over when its time has passed, and the failures still count for the next one', () => {
    expect(assessFailures([failedAt(1_000), failedAt(2_000)], 4_000)).toEqual({ backoff: null, failuresByNode: new Map([['n1', 2]]) });
  });

  test('begins anew once a replica served long enough', () => {
    const crashedAtMs = 10_000 + STABLE_AFTER_MS + 5;
    expect(assessFailures([failedAt(9_000), failedAt(crashedAtMs, 10_000)], crashedAtMs).backoff?.failuresInRow).toBe(1);
    expect(assessFailures([failedAt(9_000), living(10_000)], 10_000 + STABLE_AFTER_MS).failuresByNode.size).toBe(0);
    expect(assessFailures([failedAt(9_000), living(10_000)], 9_500 + STABLE_AFTER_MS).failuresByNode.size).toBe(1);
  });

  test('is not reset by a neighbour that has been serving all along', () => {
    const attempts = [living(0), failedAt(STABLE_AFTER_MS + 1), failedAt(STABLE_AFTER_MS + 3)];
    expect(assessFailures(attempts, STABLE_AFTER_MS + 4).backoff?.failuresInRow).toBe(2);
  });

  test('does not blame an endpoint for ends that were no failures', () => {
    expect(assessFailures([{ nodeId: 'n1', placedAtMs: 0, readyAtMs: 1, endedAtMs: 5, failure: null }], 6)).toEqual({ backoff: null, failuresByNode: new Map() });
  });
});

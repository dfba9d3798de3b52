import { describe, expect, test } from '@jest/globals';
import { beginProbe, CIRCUIT_FAILURES_IN_A_ROW, CIRCUIT_OPEN_MS, circuitAllows, closedCircuit, openCircuitsMax, recordOutcome, type Circuit, type ReplicaOutcome } from './circuit.js';

function afterOutcomes(outcomes: readonly ReplicaOutcome[], mayOpen = true): Circuit {
  return outcomes.reduce<Circuit>((circuit, outcome) => recordOutcome(circuit, outcome, { isProbe: false, mayOpen, nowMs: 0 }).circuit, closedCircuit);
}

const failures = (count: number): ReplicaOutcome[] => Array.from({ length: count }, () => 'engine-failed');

describe('circuit', () => {
  test('opens at the fifth failure in a row, and says why', () => {
    const before = afterOutcomes(failures(CIRCUIT_FAILURES_IN_A_ROW - 1));
    expect(before.phase).toBe('closed');
    const step = recordOutcome(before, 'engine-failed', { isProbe: false, mayOpen: true, nowMs: 1_000 });
    expect(step.change).toEqual({ kind: 'opened', reason: 'the last 5 requests in a row failed', failures: 5 });
    expect(circuitAllows(step.circuit, 1_000 + CIRCUIT_OPEN_MS - 1)).toBe(false);
    expect(circuitAllows(step.circuit, 1_000 + CIRCUIT_OPEN_MS)).toBe(true);
  });

  test('a success in between starts the row again; an aborted request says nothing', () => {
    expect(afterOutcomes([...failures(4), 'ok', ...failures(4)]).phase).toBe('closed');
    expect(afterOutcomes([...failures(4), 'aborted', 'engine-failed']).phase).toBe('open');
  });

  test('opens when more than a tenth of the last twenty failed', () => {
    const tenth: ReplicaOutcome[] = Array.from({ length: 20 }, (_, index) => (index % 10 === 9 ? 'engine-failed' : 'ok'));
    expect(afterOutcomes(tenth).phase).toBe('closed');
    // The oldest success falls out of the window and a failure comes in: three of twenty.
    const step = recordOutcome(afterOutcomes(tenth), 'engine-failed', { isProbe: false, mayOpen: true, nowMs: 0 });
    expect(step.change).toEqual({ kind: 'opened', reason: '3 of the last 20 requests failed', failures: 3 });
    expect(afterOutcomes(['engine-failed', 'ok', 'engine-failed', 'engine-failed']).phase).toBe('closed');
  });

  test('opens at the first request that got no token in time, and is due for a probe at once', () => {
    const step = recordOutcome(afterOutcomes(['ok', 'ok']), 'engine-timed-out', { isProbe: false, mayOpen: true, nowMs: 1_000 });
    expect(step.change).toEqual({ kind: 'opened', reason: 'a request got no token in time', failures: 1 });
    expect(circuitAllows(step.circuit, 1_000)).toBe(true);
    const failed = recordOutcome(beginProbe(step.circuit), 'engine-timed-out', { isProbe: true, mayOpen: true, nowMs: 2_000 }).circuit;
    expect([circuitAllows(failed, 2_000 + CIRCUIT_OPEN_MS - 1), circuitAllows(failed, 2_000 + CIRCUIT_OPEN_MS)]).toEqual([false, true]);
    expect(afterOutcomes(['engine-timed-out'], false).phase).toBe('closed');
  });

  test('stays closed while it may not open, and opens at the next failure once it may', () => {
    const held = afterOutcomes(failures(9), false);
    expect(held.phase).toBe('closed');
    expect(recordOutcome(held, 'engine-failed', { isProbe: false, mayOpen: true, nowMs: 0 }).circuit.phase).toBe('open');
  });

  test('lets one probe through, and judges by the probe alone', () => {
    const open = afterOutcomes(failures(5));
    const probing = beginProbe(open);
    expect(circuitAllows(probing, CIRCUIT_OPEN_MS)).toBe(false);
    expect(recordOutcome(probing, 'ok', { isProbe: false, mayOpen: true, nowMs: CIRCUIT_OPEN_MS }).circuit).toBe(probing);
    expect(recordOutcome(probing, 'ok', { isProbe: true, mayOpen: true, nowMs: CIRCUIT_OPEN_MS })).toEqual({ circuit: closedCircuit, change: { kind: 'closed' } });
    const failed = recordOutcome(probing, 'engine-failed', { isProbe: true, mayOpen: true, nowMs: CIRCUIT_OPEN_MS }).circuit;
    expect(failed).toMatchObject({ phase: 'open', retryAtMs: 2 * CIRCUIT_OPEN_MS, isProbing: false });
    const aborted = recordOutcome(probing, 'aborted', { isProbe: true, mayOpen: true, nowMs: CIRCUIT_OPEN_MS }).circuit;
    expect(circuitAllows(aborted, CIRCUIT_OPEN_MS)).toBe(true);
  });

  test('never lets more than half be out', () => {
    expect([0, 1, 2, 3, 4].map(openCircuitsMax)).toEqual([0, 0, 1, 1, 2]);
  });
});

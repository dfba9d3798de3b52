import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideScale, decideWake, LOW_LOAD_WINDOW_MS, QUEUE_WINDOW_MS, type ScaleInput } from './decide-scale.js';
import { emptyLoadMemory, observeLoad, type EndpointLoadReading } from './load-memory.js';
import type { WantedReplicas } from './scaling-projection.js';

const NOW = 10_000_000;

function wanted(replicas: number, rule: WantedReplicas['rule'] = 'floor', sinceMs = 0): WantedReplicas {
  return { replicas, sinceMs, rule, reason: 'r', correlationId: 'c', eventId: 'e' };
}

function known(waiting: number, running: number, lastRequestAtMs: number | null = NOW): EndpointLoadReading {
  return { kind: 'known', waiting, running, lastRequestAtMs };
}

function input(overrides: Partial<ScaleInput> = {}): ScaleInput {
  return {
    status: 'active',
    scaling: { minReplicas: 1, maxReplicas: 3, scaleToZeroAfterIdleSeconds: null },
    slotsPerReplica: 4,
    wanted: wanted(1),
    ready: 1,
    starting: 0,
    load: { kind: 'unknown' },
    memory: emptyLoadMemory,
    nowMs: NOW,
    ...overrides,
  };
}

const sleepy = { minReplicas: 1, maxReplicas: 3, scaleToZeroAfterIdleSeconds: 60 };
const crowded = { ...emptyLoadMemory, unusedSinceMs: 0, crowdedSinceMs: NOW - QUEUE_WINDOW_MS };

describe('limits', () => {
  test('a new endpoint gets its floor', () => {
    expect(decideScale(input({ wanted: undefined, scaling: { minReplicas: 2, maxReplicas: 3, scaleToZeroAfterIdleSeconds: null } }))).toMatchObject({ to: 2, rule: 'floor' });
  });

  test('a new endpoint with no floor starts asleep', () => {
    expect(decideScale(input({ wanted: undefined, ready: 0, scaling: { ...sleepy, minReplicas: 0 } }))).toBeUndefined();
  });

  test('no more than the ceiling', () => expect(decideScale(input({ wanted: wanted(9) }))).toMatchObject({ to: 3, rule: 'ceiling' }));

  test('a retired endpoint gets nothing', () => {
    expect(decideScale(input({ status: 'retired' }))).toMatchObject({ to: 0, rule: 'retired' });
    expect(decideScale(input({ status: 'retired', wanted: wanted(0) }))).toBeUndefined();
  });

  test('nothing changes while nothing is known and the limits hold', () => expect(decideScale(input({ wanted: wanted(2), ready: 2 }))).toBeUndefined());
});

describe('a queue', () => {
  test('asks for one more replica once it has lasted', () => {
    expect(decideScale(input({ load: known(5, 4), memory: crowded }))).toMatchObject({ to: 2, rule: 'queue' });
    expect(decideScale(input({ load: known(5, 4), memory: { ...crowded, crowdedSinceMs: NOW - QUEUE_WINDOW_MS + 1 } }))).toBeUndefined();
  });

  test('does not ask again while the replica it asked for is not placed', () => {
    expect(decideScale(input({ wanted: wanted(2), ready: 1, starting: 0, load: known(50, 4), memory: crowded }))).toBeUndefined();
  });

  test('counts a starting replica as capacity', () => {
    expect(decideScale(input({ wanted: wanted(2), ready: 1, starting: 1, load: known(2, 4), memory: crowded }))).toBeUndefined();
    expect(decideScale(input({ wanted: wanted(2), ready: 1, starting: 1, load: known(3, 4), memory: crowded }))).toMatchObject({ to: 3 });
  });

  test('counts its time anew after each step', () => {
    expect(decideScale(input({ wanted: wanted(1, 'queue', NOW - 1_000), load: known(5, 4), memory: crowded }))).toBeUndefined();
  });

  test('stops at the ceiling', () => {
    expect(decideScale(input({ wanted: wanted(3), ready: 3, load: known(500, 12), memory: crowded }))).toBeUndefined();
  });
});

describe('sleep and waking', () => {
  const idleSince = (ms: number | null) => ({ scaling: sleepy, load: known(0, 0, ms), memory: { ...emptyLoadMemory, unusedSinceMs: NOW - 90_000 } });

  test('an idle endpoint goes to zero after its time, below its floor, and stays there', () => {
    expect(decideScale(input(idleSince(NOW - 60_000)))).toMatchObject({ to: 0, rule: 'idle', signals: { idleMs: 60_000 } });
    expect(decideScale(input(idleSince(NOW - 59_999)))).toBeUndefined();
    expect(decideScale(input({ ...idleSince(NOW - 60_000), wanted: wanted(0, 'idle'), ready: 0 }))).toBeUndefined();
  });

  test('no request since the router started counts from when that was known', () => {
    expect(decideScale(input(idleSince(null)))).toMatchObject({ to: 0, signals: { idleMs: 90_000 } });
  });

  test('a router that restarted has that time begin anew', () => {
    const observation = { nowMs: NOW, wanted: 1, coming: 1, slotsPerReplica: 4 };
    const inUse = observeLoad({ ...emptyLoadMemory, unusedSinceMs: 1 }, { ...observation, load: known(0, 0, NOW - 10) });
    expect(inUse.unusedSinceMs).toBeNull();
    expect(observeLoad(inUse, { ...observation, load: known(0, 0, null) }).unusedSinceMs).toBe(NOW);
    expect(observeLoad({ ...emptyLoadMemory, unusedSinceMs: 1 }, { ...observation, load: known(0, 0, null) }).unusedSinceMs).toBe(1);
  });

  test('no data is not idleness', () => {
    expect(decideScale(input({ scaling: sleepy, load: { kind: 'unknown' } }))).toBeUndefined();
  });

  test('an endpoint that was woken a moment ago does not sleep at once', () => {
    expect(decideScale(input({ ...idleSince(NOW - 600_000), wanted: wanted(1, 'wake', NOW - 1_000), ready: 0, starting: 1 }))).toBeUndefined();
  });

  test('one that works or has a queue does not sleep', () => {
    expect(decideScale(input({ ...idleSince(NOW - 600_000), load: known(0, 1, NOW - 600_000) }))).toBeUndefined();
    expect(decideScale(input({ ...idleSince(NOW - 600_000), load: known(1, 0, NOW - 600_000) }))).toBeUndefined();
  });

  test('a waiting request wakes, up to the floor', () => {
    expect(decideScale(input({ scaling: { ...sleepy, minReplicas: 2 }, wanted: wanted(0, 'idle'), ready: 0, load: known(1, 0) }))).toMatchObject({ to: 2, rule: 'wake' });
    expect(decideWake(input({ scaling: { ...sleepy, minReplicas: 0 }, wanted: wanted(0) }), 7)).toMatchObject({ to: 1, rule: 'wake', signals: { waiting: 7 } });
    expect(decideWake(input({ wanted: wanted(1) }), 7)).toBeUndefined();
    expect(decideWake(input({ wanted: wanted(0), status: 'retired' }), 7)).toBeUndefined();
  });

  test('without a scale-to-zero time a woken endpoint keeps one replica', () => {
    const calm = { unusedSinceMs: 0, crowdedSinceMs: null, calm: { sinceMs: 0, peakRunning: 0 } };
    expect(decideScale(input({ scaling: { minReplicas: 0, maxReplicas: 3, scaleToZeroAfterIdleSeconds: null }, load: known(0, 0, 0), memory: calm }))).toBeUndefined();
  });
});

describe('low load', () => {
  const calm = (peakRunning: number, sinceMs = 0) => ({ unusedSinceMs: 0, crowdedSinceMs: null, calm: { sinceMs, peakRunning } });

  test('gives up replicas after its window, down to what the peak needs', () => {
    expect(decideScale(input({ wanted: wanted(3), ready: 3, load: known(0, 1), memory: calm(3) }))).toMatchObject({ to: 2, rule: 'low-load' });
    expect(decideScale(input({ wanted: wanted(3), ready: 3, load: known(0, 0), memory: calm(0) }))).toMatchObject({ to: 1 });
    expect(decideScale(input({ wanted: wanted(3), ready: 3, load: known(0, 1), memory: calm(1, NOW - LOW_LOAD_WINDOW_MS + 1) }))).toBeUndefined();
  });

  test('is forgotten as soon as load is high or unknown', () => {
    const observation = { nowMs: NOW, wanted: 3, coming: 3, slotsPerReplica: 4 };
    expect(observeLoad(calm(1), { ...observation, load: known(0, 12) }).calm).toBeNull();
    expect(observeLoad(calm(1), { ...observation, load: known(1, 1) }).calm).toBeNull();
    expect(observeLoad(calm(1), { ...observation, load: { kind: 'unknown' } })).toEqual(emptyLoadMemory);
    expect(observeLoad(calm(1), { ...observation, load: known(0, 3) }).calm).toEqual({ sinceMs: 0, peakRunning: 3 });
  });
});

test('whatever is seen, the number stays within its limits, moves up by one, and never moves down on unknown load', () => {
  const reading = fc.oneof(
    fc.constant<EndpointLoadReading>({ kind: 'unknown' }),
    fc.record({ kind: fc.constant('known' as const), waiting: fc.nat(100), running: fc.nat(40), lastRequestAtMs: fc.option(fc.nat(NOW)) }),
  );
  const limits = fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 6 }), fc.option(fc.integer({ min: 1, max: 600 })));
  const history = fc.option(fc.record({ replicas: fc.nat(6), rule: fc.constantFrom('floor' as const, 'idle' as const, 'queue' as const), sinceMs: fc.nat(NOW) }), { nil: undefined });
  const since = fc.option(fc.nat(NOW));
  fc.assert(fc.property(reading, limits, history, since, since, fc.nat(6), fc.nat(6), (load, [min, spread, idleSeconds], past, unusedSinceMs, crowdedSinceMs, ready, starting) => {
    const scaling = { minReplicas: min, maxReplicas: min + spread, scaleToZeroAfterIdleSeconds: idleSeconds };
    const before = past === undefined ? undefined : { ...wanted(past.replicas), ...past };
    const memory = { unusedSinceMs, crowdedSinceMs, calm: unusedSinceMs === null ? null : { sinceMs: unusedSinceMs, peakRunning: 1 } };
    const decision = decideScale(input({ scaling, wanted: before, ready, starting, load, memory }));
    if (decision === undefined) return;
    const from = before?.replicas ?? 0;
    expect(decision.to).not.toBe(from);
    expect(decision.to).toBeLessThanOrEqual(scaling.maxReplicas);
    if (decision.rule !== 'idle') expect(decision.to).toBeGreaterThanOrEqual(Math.max(from === 0 ? 1 : 0, Math.min(from, min)));
    if (decision.to > from) expect(decision.to).toBeLessThanOrEqual(Math.max(from + 1, min));
    if (decision.to < from && load.kind === 'unknown') expect(decision.rule).toBe('ceiling');
  }));
});

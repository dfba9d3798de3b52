import { wantedReplicasChangedV1 } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { endpointScaleRef } from './endpoint-scale.js';
import { DECISIONS_KEPT_MAX, scalingProjection, type ScalingState } from './scaling-projection.js';

function changed(sequence: number, endpointId: string, to: number): RecordedEvent {
  const time = new Date(Date.UTC(2_026, 10, 29) + sequence).toISOString();
  const data = { ...wantedReplicasChangedV1.example, endpointId, from: 0, to };
  return { type: 'wanted-replicas.changed.v1', data, ref: endpointScaleRef(endpointId), stream: 'EV_SCALING', sequence, time, id: `evt_${sequence}`, source: 'test', correlationId: 'cor', causationId: 'c' };
}

function fold(events: readonly RecordedEvent[], from: ScalingState = scalingProjection.initialState()): ScalingState {
  return events.reduce((state, event) => scalingProjection.apply(state, event), from);
}

describe('the scaling projection', () => {
  test('has the newest number of every endpoint with its reason', () => {
    const state = fold([changed(1, 'ep_01', 1), changed(2, 'ep_02', 5), changed(3, 'ep_01', 2)]);
    expect(state.wanted.get('ep_01')).toEqual({ replicas: 2, sinceMs: Date.UTC(2_026, 10, 29) + 3, rule: 'wake', reason: wantedReplicasChangedV1.example.reason, correlationId: 'cor', eventId: 'evt_3' });
    expect(state.wanted.get('ep_02')?.replicas).toBe(5);
  });

  test('keeps the newest decisions only', () => {
    const state = fold(Array.from({ length: DECISIONS_KEPT_MAX + 3 }, (_, index) => changed(index + 1, 'ep_01', index)));
    expect(state.decisions).toHaveLength(DECISIONS_KEPT_MAX);
    expect(state.decisions[0]?.to).toBe(3);
  });

  test('is the same after a snapshot and a restore at any point', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.constantFrom('ep_01', 'ep_02'), fc.nat(5)), { maxLength: 20 }), fc.nat(20), (changes, cut) => {
      const events = changes.map(([endpointId, to], index) => changed(index + 1, endpointId, to));
      const before = fold(events.slice(0, cut));
      const restored = scalingProjection.restore(JSON.parse(JSON.stringify(scalingProjection.snapshot(before))));
      expect(fold(events.slice(cut), restored)).toEqual(fold(events));
    }));
  });
});

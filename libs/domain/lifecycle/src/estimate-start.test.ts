import { describe, expect, test } from '@jest/globals';
import type { RecordedEvent } from '@penstock/kernel';
import { estimateStart } from './estimate-start.js';
import { fleetProjection } from './fleet-projection.js';
import type { FleetState } from './fleet-state.js';

let sequence = 0;

function event(type: string, replicaId: string, atMs: number, data: object = {}): RecordedEvent {
  sequence += 1;
  return { id: `e.${sequence}`, type, data: { replicaId, ...data }, time: new Date(atMs).toISOString(), sequence, stream: 'EV_FLEET' } as unknown as RecordedEvent;
}

const placed = (replicaId: string, atMs: number, endpointId = 'ep_1') => event('replica.placed.v2', replicaId, atMs, { endpointId, modelVersionId: 'mv_1', members: [{ nodeId: 'node_1', acceleratorIds: [] }], reservedBytes: 1, reason: { summary: '', candidates: [] } });
const ready = (replicaId: string, atMs: number) => event('replica.ready.v1', replicaId, atMs, { url: 'http://127.0.0.1:1', engine: 'vllm', servedModel: 'm', slots: 1, contextTokens: 1, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } });
const fold = (events: readonly RecordedEvent[]): FleetState => events.reduce((state, each) => fleetProjection.apply(state, each), fleetProjection.initialState());

describe('the estimate of a start', () => {
  test('is the median of the last starts less what has passed, and never below zero', () => {
    const earlier = [1, 2, 3].flatMap((number) => [placed(`rep_${number}`, number * 100_000), ready(`rep_${number}`, number * 100_000 + number * 10_000), event('replica.stopped.v1', `rep_${number}`, number * 100_000 + 50_000, { reason: 'idle' })]);
    const state = fold([...earlier, placed('rep_now', 1_000_000), event('replica.advanced.v1', 'rep_now', 1_001_000, { phase: 'loading' })]);
    expect(estimateStart(state, 'ep_1', 1_005_000)).toEqual({ phase: 'loading', etaMs: 15_000 });
    expect(estimateStart(state, 'ep_1', 1_900_000)).toEqual({ phase: 'loading', etaMs: 0 });
    expect(estimateStart(state, 'ep_2', 1_005_000)).toBeUndefined();
  });

  test('without an earlier start says the phase and makes up no time; of several it tells of the oldest', () => {
    const state = fold([placed('rep_1', 1_000), placed('rep_2', 2_000), event('replica.advanced.v1', 'rep_1', 3_000, { phase: 'pulling' }), placed('rep_3', 500, 'ep_2')]);
    expect(estimateStart(state, 'ep_1', 4_000)).toEqual({ phase: 'pulling', etaMs: null });
  });
});

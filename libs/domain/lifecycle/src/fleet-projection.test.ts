import { migChangePlannedV1, migInstanceCreatedV1, nodeJoinedV2, placementRefusedV2, replicaPlacedV2, replicaProfileMeasuredV1, replicaReadyV1 } from '@penstock/contract-events';
import type { AggregateRef, NewEvent, RecordedEvent } from '@penstock/kernel';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ENDED_REPLICAS_MAX, fleetProjection } from './fleet-projection.js';
import { readyReplicasOf, replicasOf, type FleetState } from './fleet-state.js';
import { endpointPlacementRef, migGeometryRef, nodeRef, placementLedgerRef, replicaProfileRef, replicaRef } from './refs.js';

const placement = replicaPlacedV2.schema.parse(replicaPlacedV2.example);
const machine = nodeJoinedV2.schema.parse(nodeJoinedV2.example);

function record(ref: AggregateRef, event: NewEvent, sequence: number): RecordedEvent {
  const time = new Date(Date.UTC(2_026, 10, 29) + sequence * 1_000).toISOString();
  return { ...event, ref, stream: 'EV_FLEET', sequence, time, id: `evt_${sequence}`, source: 'test', correlationId: 'c', causationId: 'c' };
}

function fold(events: readonly (readonly [AggregateRef, NewEvent])[], from: FleetState = fleetProjection.initialState()): FleetState {
  return events.reduce((state, [ref, event], index) => fleetProjection.apply(state, record(ref, event, index + 1)), from);
}

const ofReplica = (replicaId: string, type: string, data: object = {}): readonly [AggregateRef, NewEvent] => [replicaRef(replicaId), { type, data: { replicaId, ...data } }];
const place = (replicaId: string, endpointId = 'ep_01') => ofReplica(replicaId, 'replica.placed.v2', { ...placement, replicaId, endpointId });
const readyData = { ...replicaReadyV1.example };
const ready = (replicaId: string) => ofReplica(replicaId, 'replica.ready.v1', { ...readyData, replicaId });
const fail = (replicaId: string) => ofReplica(replicaId, 'replica.failed.v1', { phase: 'loading', code: 'engine_exited', reason: 'gone' });
const stop = (replicaId: string) => ofReplica(replicaId, 'replica.stopped.v1', { reason: 'drained' });
const decide = (replicaId: string): readonly [AggregateRef, NewEvent] => [placementLedgerRef, { type: 'placement.decided.v2', data: { ...placement, replicaId } }];
const refuse = (endpointId = 'ep_01'): readonly [AggregateRef, NewEvent] => [endpointPlacementRef(endpointId), { type: 'placement.refused.v2', data: { ...placementRefusedV2.example, endpointId } }];
const join: readonly [AggregateRef, NewEvent] = [nodeRef('node_01'), { type: 'node.joined.v2', data: machine }];
const lose: readonly [AggregateRef, NewEvent] = [nodeRef('node_01'), { type: 'node.lost.v1', data: { nodeId: 'node_01', cause: 'left', reason: 'stopped' } }];

describe('the fleet projection', () => {
  test('follows a replica with the times of its phases', () => {
    const state = fold([place('rep_01'), ready('rep_01')]);
    const replica = state.replicas.get('rep_01');
    expect(replica).toMatchObject({ phase: 'ready', url: readyData.url, slots: readyData.slots, servedModel: readyData.servedModel, failureCode: null });
    expect([replica?.placedAtMs, replica?.phaseSinceMs, replica?.readyAtMs].map((ms) => (ms ?? 0) - Date.UTC(2_026, 10, 29))).toEqual([1_000, 2_000, 2_000]);
  });

  test('tells living from ready from ended replicas of an endpoint', () => {
    const state = fold([place('rep_01'), place('rep_02'), place('rep_03'), place('rep_04', 'ep_02'), ready('rep_02'), fail('rep_03')]);
    expect(replicasOf(state, 'ep_01').map((replica) => replica.replicaId)).toEqual(['rep_01', 'rep_02']);
    expect(readyReplicasOf(state, 'ep_01').map((replica) => replica.replicaId)).toEqual(['rep_02']);
    expect(state.replicas.get('rep_03')).toMatchObject({ phase: 'failed', failureCode: 'engine_exited', failedInPhase: 'loading', reason: 'gone' });
  });

  test('holds a decided placement as pending until the replica is placed', () => {
    const decided = fold([decide('rep_01')]);
    expect([...decided.ledger.pending.keys()]).toEqual(['rep_01']);
    const placed = fold([decide('rep_01'), place('rep_01'), decide('rep_02')]);
    expect([...placed.ledger.pending.keys()]).toEqual(['rep_02']);
    expect(placed.ledger.lastSequence).toBe(3);
  });

  test('forgets a refusal once a replica of the endpoint is placed', () => {
    expect([...fold([refuse(), refuse('ep_02'), place('rep_01')]).refusals.keys()]).toEqual(['ep_02']);
  });

  test('knows a lost node and its return', () => {
    expect(fold([join, lose]).nodes.get('node_01')).toMatchObject({ status: 'lost', statusReason: 'stopped' });
    expect(fold([join, lose, join]).nodes.get('node_01')).toMatchObject({ status: 'up', statusReason: null });
  });

  test('keeps what operators want of a node over a loss and a return, and its MIG instances as they change', () => {
    const drain: readonly [AggregateRef, NewEvent] = [nodeRef('node_01'), { type: 'node.drain-requested.v1', data: { nodeId: 'node_01', reason: 'upgrade' } }];
    expect(fold([join, drain, lose, join]).nodes.get('node_01')).toMatchObject({ status: 'up', drainReason: 'upgrade', cordonReason: 'upgrade', reclaimAt: null });
    const gpu = { ...machine.accelerators[0]!, mig: { isEnabled: true, instances: [{ profile: '1g.10gb', start: 6, uuid: null }] } };
    const joinGpu: readonly [AggregateRef, NewEvent] = [nodeRef('node_01'), { type: 'node.joined.v2', data: { ...machine, accelerators: [gpu] } }];
    const planned: readonly [AggregateRef, NewEvent] = [migGeometryRef('acc_01'), { type: 'mig.change-planned.v1', data: migChangePlannedV1.example }];
    const created: readonly [AggregateRef, NewEvent] = [migGeometryRef('acc_01'), { type: 'mig.instance-created.v1', data: migInstanceCreatedV1.example }];
    const state = fold([joinGpu, planned, created]);
    expect(state.geometries.get('acc_01')).toMatchObject({ change: { changeId: 'mig_01' }, instances: [{ profile: '3g.40gb', start: 0 }, { profile: '1g.10gb', start: 6 }] });
    expect(fold([joinGpu, planned, created, join]).geometries.size).toBe(0);
  });

  test('keeps the newest profile that was measured', () => {
    const measured = (replicaId: string, loadMs: number): readonly [AggregateRef, NewEvent] => [replicaProfileRef(replicaId), { type: 'replica-profile.measured.v1', data: { ...replicaProfileMeasuredV1.example, replicaId, start: { ...replicaProfileMeasuredV1.example.start, loadMs } } }];
    expect([...fold([measured('rep_01', 1), measured('rep_02', 2)]).profiles.values()]).toMatchObject([{ replicaId: 'rep_02', start: { loadMs: 2 } }]);
  });

  test('keeps a bounded number of ended replicas and every living one', () => {
    const ids = Array.from({ length: ENDED_REPLICAS_MAX + 5 }, (_, index) => `rep_${index}`);
    const state = fold([place('rep_living'), ...ids.flatMap((id) => [place(id), stop(id)])]);
    expect(state.replicas.size).toBe(ENDED_REPLICAS_MAX + 1);
    expect(state.replicas.has('rep_living')).toBe(true);
    expect(state.replicas.has('rep_4')).toBe(false);
    expect(state.replicas.has('rep_5')).toBe(true);
  });

  test('is the same after a snapshot and a restore at any point', () => {
    const ids = ['rep_01', 'rep_02', 'rep_03'] as const;
    const anyEvent = fc.oneof(
      fc.constantFrom(...ids).chain((id) => fc.constantFrom(decide(id), place(id), ready(id), fail(id), stop(id), ofReplica(id, 'replica.advanced.v1', { phase: 'loading' }), ofReplica(id, 'replica.drain-started.v1', { reason: 'x' }))),
      fc.constantFrom(
        join, lose, refuse(), refuse('ep_02'), [nodeRef('node_01'), { type: 'node.cordoned.v1', data: { nodeId: 'node_01', reason: 'x' } }] as const,
        [migGeometryRef('acc_01'), { type: 'mig.instance-created.v1', data: migInstanceCreatedV1.example }] as const, [replicaProfileRef('rep_01'), { type: 'replica-profile.measured.v1', data: replicaProfileMeasuredV1.example }] as const,
      ),
    );
    fc.assert(fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.nat(40), (events, cut) => {
      const before = fold(events.slice(0, cut));
      const restored = fleetProjection.restore(JSON.parse(JSON.stringify(fleetProjection.snapshot(before))));
      const rest = events.slice(cut);
      expect(fleetProjection.snapshot(fold(rest, restored))).toEqual(fleetProjection.snapshot(fold(rest, before)));
    }));
  });
});

import { given } from '@penstock/testing-kit';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { migGeometryDecider, stepsLeft, type MigChange, type MigCommand, type MigEvent, type MigGeometryState } from './mig-geometry.js';

const on = { nodeId: 'node_01', acceleratorId: 'acc_01' };
const change: MigChange = { changeId: 'mig_01', forReplicaId: 'rep_01', reason: 'wanted', steps: [{ kind: 'destroy', profile: '1g.10gb', start: 0 }, { kind: 'create', profile: '3g.40gb', start: 0 }] };
const planned: MigEvent = { type: 'mig.change-planned.v1', data: { ...on, ...change, steps: [...change.steps] } };
const small = { profile: '1g.10gb', start: 0, uuid: 'MIG-1' };
const large = { profile: '3g.40gb', start: 0, uuid: 'MIG-2' };
const found: MigEvent = { type: 'mig.instance-created.v1', data: { ...on, changeId: null, ...small } };
const destroyed: MigEvent = { type: 'mig.instance-destroyed.v1', data: { ...on, changeId: 'mig_01', profile: '1g.10gb', start: 0 } };
const created: MigEvent = { type: 'mig.instance-created.v1', data: { ...on, changeId: 'mig_01', ...large } };
const ended: MigEvent = { type: 'mig.change-ended.v1', data: { ...on, changeId: 'mig_01', outcome: 'done', reason: '2 steps taken' } };
const plan: MigCommand = { kind: 'plan-change', ...on, ...change };
const end: MigCommand = { kind: 'end-change', ...on, changeId: 'mig_01', outcome: 'done', reason: '2 steps taken' };

describe('the MIG geometry of a GPU', () => {
  test('changes step by step, and a step that was told before changes nothing', () => {
    given(migGeometryDecider, found).when(plan).then(planned);
    given(migGeometryDecider, found, planned).when(plan).then();
    given(migGeometryDecider, found, planned).when({ kind: 'note-destroyed', ...on, changeId: 'mig_01', profile: '1g.10gb', start: 0 }).then(destroyed);
    given(migGeometryDecider, found, planned, destroyed).when({ kind: 'note-destroyed', ...on, changeId: 'mig_01', profile: '1g.10gb', start: 0 }).then();
    given(migGeometryDecider, found, planned, destroyed, created).when({ kind: 'note-created', ...on, changeId: 'mig_01', instance: large }).then();
    given(migGeometryDecider, found, planned, destroyed, created).when(end).then(ended);
    given(migGeometryDecider, found, planned, destroyed, created, ended).when(plan).then();
  });

  test('has one change at a time', () => {
    given(migGeometryDecider, planned).when({ ...plan, changeId: 'mig_02' }).thenRefused('conflict');
    given(migGeometryDecider, planned, ended).when({ ...plan, changeId: 'mig_02' }).then({ ...planned, data: { ...planned.data, changeId: 'mig_02' } } as MigEvent);
    given(migGeometryDecider).when(end).then();
  });

  test('after a crash between any two events, the steps that are left lead to the same instances', () => {
    const all = [found, planned, destroyed, created, ended];
    fc.assert(fc.property(fc.integer({ min: 2, max: all.length }), (cut) => {
      let state: MigGeometryState | null = null;
      for (const event of all.slice(0, cut)) state = migGeometryDecider.evolve(state, event);
      for (const step of state?.change === null || state === null ? [] : stepsLeft(state.change, state.instances)) {
        state = migGeometryDecider.evolve(state, step.kind === 'destroy' ? destroyed : created);
      }
      expect(state?.instances).toEqual([large]);
    }));
  });
});

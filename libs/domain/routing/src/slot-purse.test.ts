import { expect, test } from '@jest/globals';
import { createAdmissionState, noStartTrouble } from './admission-state.js';
import { LEND_AFTER_QUEUE_MS, reportLoans } from './loans.js';
import { SlotPurse } from './slot-purse.js';
import { syncReplicas } from './sync-replicas.js';

const asked = { excludedReplicaIds: [], workTokens: 1 };
const replica = (replicaId: string) => ({ replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'engine-sim' as const, servedModel: 'm', slots: 4 });

test('a request on a lent slot that timed out takes its replica out, here at once and at the router with the next report', () => {
  const state = createAdmissionState({ endpointId: 'ep_1', queueMax: 8, queueWaitMsMax: 60_000, leaseTtlMs: 20_000, probesApart: true }, 0);
  syncReplicas(state, { ready: [replica('a'), replica('b')], draining: [], trouble: noStartTrouble }, 0);
  const purse = new SlotPurse('ep_1');
  let nowMs = LEND_AFTER_QUEUE_MS;
  const talk = (): void => {
    const answer = reportLoans(state, 'g', purse.report(nowMs), nowMs);
    if (answer !== undefined) purse.apply(answer.loans, nowMs);
    nowMs += 1;
  };
  for (let count = 0; count < 4; count += 1) purse.enter();
  talk();
  expect(new Set(Array.from({ length: 4 }, () => purse.take(asked, nowMs)?.replicaId))).toEqual(new Set(['a', 'b']));
  purse.give('a', 1, 'ok');
  purse.give('a', 1, 'engine-timed-out');
  const next = Array.from({ length: 2 }, () => purse.take(asked, nowMs)?.replicaId);
  expect(next).not.toContain('a');
  talk();
  expect(state.replicas.get('a')?.circuit.phase).toBe('open');
  expect(state.replicas.get('b')?.circuit.phase).toBe('closed');
});

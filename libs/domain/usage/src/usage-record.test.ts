import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { usageRecordedV1 } from '@penstock/contract-events';
import { interruptedUsage, settleUsage, usageRef, type UsageDraft } from './usage-record.js';

const draft: UsageDraft = {
  requestId: 'req_1', organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', endpointId: 'ep_1', modelName: 'm', modelVersionId: 'mv_1', batchId: null, operation: 'chat', stream: true,
  startedAt: '2026-11-29T12:00:00.000Z', replicaId: null,
};

describe('usage records', () => {
  test('a settled draft is a valid event that names who answered', () => {
    const record = settleUsage(draft, {
      replicaId: 'rep_1', modelVersionId: 'mv_2', promptTokens: 5, cachedTokens: 1, completionTokens: 7, reasoningTokens: 0, status: 'completed', finishReason: 'stop', httpStatus: 200, errorCode: null, tokensEstimated: false, queueMs: 1.5, ttftMs: 20, durationMs: 90, engineMs: 88,
    });
    expect(usageRecordedV1.schema.parse(record)).toMatchObject({ requestId: 'req_1', replicaId: 'rep_1', modelVersionId: 'mv_2', completionTokens: 7 });
    expect(usageRef(record)).toEqual({ context: 'usage', aggregate: 'org_1', id: 'ep_1' });
  });

  test('a record is valid whatever an engine says', () => {
    const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(NaN, Infinity, -1, 2.5, Number.MAX_VALUE));
    fc.assert(fc.property(fc.array(number, { minLength: 8, maxLength: 8 }), fc.option(fc.string({ maxLength: 300 })), fc.option(fc.string({ maxLength: 300 })), ([a, b, c, d, e, f, g, h]: number[], finishReason, errorCode) => {
      const record = settleUsage(draft, { replicaId: null, promptTokens: a!, cachedTokens: b!, completionTokens: c!, reasoningTokens: d!, queueMs: e!, ttftMs: f!, durationMs: g!, engineMs: h!, status: 'failed', finishReason, errorCode, httpStatus: 502, tokensEstimated: true });
      expect(usageRecordedV1.schema.safeParse(record).error).toBeUndefined();
    }));
  });

  test('an interrupted one counts what was delivered and says so', () => {
    const nowMs = Date.parse('2026-11-29T12:00:05.000Z');
    const progress = { replicaId: 'rep_1', promptTokens: 5, cachedTokens: 0, completionTokens: 3, reasoningTokens: 0 };
    expect(usageRecordedV1.schema.parse(interruptedUsage(draft, progress, nowMs))).toMatchObject({ status: 'interrupted', completionTokens: 3, replicaId: 'rep_1', tokensEstimated: true, durationMs: 5_000 });
    expect(usageRecordedV1.schema.parse(interruptedUsage(draft, undefined, nowMs))).toMatchObject({ completionTokens: 0, replicaId: null });
  });
});

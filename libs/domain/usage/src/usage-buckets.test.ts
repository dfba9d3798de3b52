import { describe, expect, test } from '@jest/globals';
import { queryUsage } from '@penstock/contract-commands';
import fc from 'fast-check';
import { fillBuckets, planBuckets, type UsageRow } from './usage-buckets.js';

const query = (fields: Record<string, unknown>) => queryUsage.request.parse({ organisationId: 'org_1', startTime: 0, endTime: 1, limit: 7, ...fields });

function planOf(fields: Record<string, unknown>) {
  const result = planBuckets(query(fields));
  if (result.kind === 'refused') throw new Error(result.refusal.message);
  return result.plan;
}

const row = (bucketStart: number): UsageRow => ({ bucketStart, inputTokens: 3, cachedTokens: 1, outputTokens: 2, requests: 1, projectId: null, apiKeyId: 'key_1', model: null, batch: null });

describe('usage buckets', () => {
  test('start at whole units, and the asked ends cut the first and the last', () => {
    expect(planOf({ startTime: 90_000, endTime: 180_001 })).toEqual({ widthSeconds: 86_400, firstStart: 86_400, count: 2, from: 90_000, to: 180_001, nextPage: null });
  });

  test('without requests are there with no results', () => {
    const { buckets, nextPage } = fillBuckets(planOf({ startTime: 0, endTime: 180, bucketWidth: '1m' }), [row(60)]);
    expect(buckets.map((bucket) => [bucket.start_time, bucket.end_time, bucket.results.length])).toEqual([[0, 60, 0], [60, 120, 1], [120, 180, 0]]);
    expect(buckets[1]?.results[0]).toMatchObject({ object: 'organization.usage.completions.result', input_tokens: 3, input_cached_tokens: 1, output_tokens: 2, num_model_requests: 1, api_key_id: 'key_1', user_id: null });
    expect(nextPage).toBeNull();
  });

  test('of all pages together cover the asked time once', () => {
    const asked = fc.record({ start: fc.nat({ max: 10_000_000 }), length: fc.integer({ min: 1, max: 500_000 }), width: fc.constantFrom('1m', '1h', '1d'), limit: fc.integer({ min: 1, max: 1_440 }) });
    fc.assert(fc.property(asked, ({ start, length, width, limit }) => {
      let page: string | null = null;
      let position = start;
      do {
        const plan = planOf({ startTime: start, endTime: start + length, bucketWidth: width, limit, page });
        expect(plan.from).toBe(position);
        expect(plan.count).toBeLessThanOrEqual(limit);
        expect(plan.to).toBeGreaterThan(plan.from);
        position = plan.to;
        page = plan.nextPage;
      } while (page !== null);
      expect(position).toBe(start + length);
    }), { numRuns: 50 });
  });

  test.each([
    ['an end before the start', { startTime: 100, endTime: 100 }, 'end_time'],
    ['a page of something else', { startTime: 0, endTime: 86_400, page: 'page_90000' }, 'page'],
    ['a page outside', { startTime: 0, endTime: 86_400, page: 'page_86400' }, 'page'],
    ['no page at all', { startTime: 0, endTime: 86_400, page: 'x' }, 'page'],
  ])('%s is refused with the field', (_name, fields, param) => {
    const result = planBuckets(query(fields));
    expect(result.kind === 'refused' ? result.refusal : result).toMatchObject({ code: 'invalid_value', param });
  });
});

import { expect, test } from '@jest/globals';
import { usageRecordedV1 } from '@penstock/contract-events';
import fc from 'fast-check';
import { UsageFold } from './fold-usage.js';

const example = usageRecordedV1.schema.parse(usageRecordedV1.example);

test('a request counts once, by the first of its records, however often it arrives', () => {
  fc.assert(fc.property(fc.array(fc.record({ request: fc.nat({ max: 9 }), key: fc.nat({ max: 2 }), tokens: fc.nat({ max: 1_000 }) })), (arrivals) => {
    const fold = new UsageFold();
    const firsts = new Map<number, number>();
    arrivals.forEach(({ request, key, tokens }, index) => {
      fold.add({ record: { ...example, requestId: `req_${request}`, keyId: `key_${key}`, promptTokens: tokens }, sequence: index + 1 });
      if (!firsts.has(request)) firsts.set(request, tokens);
    });
    const sums = fold.sums();
    expect(sums.reduce((total, sum) => total + sum.requests, 0)).toBe(firsts.size);
    expect(sums.reduce((total, sum) => total + sum.promptTokens, 0)).toBe([...firsts.values()].reduce((total, tokens) => total + tokens, 0));
    expect(sums.map((sum) => sum.keyId)).toEqual(sums.map((sum) => sum.keyId).toSorted());
  }));
});

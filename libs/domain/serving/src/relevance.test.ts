import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeFloats } from './base64-floats.js';
import { rankDocuments, readScores, scorePairsOf } from './relevance.js';
import { cosineSimilarity } from './similarity.js';

test('documents come best first, equal ones in their order, as many as were asked for', () => {
  const request = { model: 'm', query: 'q', documents: ['a', { text: 'b' }, 'c'] };
  expect(rankDocuments(request, [0.1, 0.9, 0.9]).map(({ index, document }) => [index, document?.text])).toEqual([[1, 'b'], [2, 'c'], [0, 'a']]);
  expect(rankDocuments({ ...request, top_n: 1, return_documents: false }, [1, 0, 0])).toEqual([{ index: 0, relevance_score: 1 }]);
});

test('one text on the left goes with each on the right', () => {
  expect(scorePairsOf({ model: 'm', text_1: 'a', text_2: ['b', 'c'] })).toEqual({ kind: 'pairs', pairs: { left: ['a', 'a'], right: ['b', 'c'] } });
  expect(scorePairsOf({ model: 'm', data_1: ['a', 'b'], data_2: ['c', 'd'] })).toMatchObject({ kind: 'pairs', pairs: { left: ['a', 'b'] } });
  expect(scorePairsOf({ model: 'm', queries: 'a' })).toMatchObject({ kind: 'fault', fault: { param: 'documents' } });
  expect(scorePairsOf({ model: 'm' })).toMatchObject({ kind: 'fault', fault: { code: 'missing_required_parameter' } });
});

test('scores are put back into the order of the texts, and a gap is a fault', () => {
  expect(readScores({ results: [{ index: 1, relevance_score: 0.9 }, { index: 0, relevance_score: 0.1 }], usage: { prompt_tokens: 3 } }, 2)).toEqual({ kind: 'scores', scores: [0.1, 0.9], promptTokens: 3 });
  expect(readScores({ data: [{ index: 1, score: 1 }] }, 2)).toMatchObject({ kind: 'fault' });
});

test('floats survive base64, and vectors are nearest to themselves', () => {
  fc.assert(fc.property(fc.float32Array({ minLength: 1, maxLength: 16, noNaN: true, noDefaultInfinity: true, min: -1_000, max: 1_000 }), (values) => {
    const vector = Float32Array.from(values);
    expect(decodeFloats(Buffer.from(vector.buffer).toString('base64'))).toEqual(vector);
    if (vector.some((value) => Math.abs(value) > 1e-3)) expect(cosineSimilarity(vector, vector)).toBeCloseTo(1, 5);
  }));
  expect(decodeFloats('not base64!')).toBeUndefined();
  expect(decodeFloats('AAA=')).toBeUndefined();
  expect(cosineSimilarity(Float32Array.of(0), Float32Array.of(1))).toBe(0);
});

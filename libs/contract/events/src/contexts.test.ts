import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { contexts, refOf, subjectOf } from './contexts.js';

const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/);

test('the subject of an aggregate tells the aggregate', () => {
  fc.assert(fc.property(fc.record({ context: fc.constantFrom(...contexts), aggregate: token, id: token }), (ref) => {
    expect(refOf(subjectOf(ref))).toEqual(ref);
  }));
});

test.each(['', 'ev', 'ev.access', 'ev.access.api-key', 'ev.access.api-key.a.b', 'ev.weather.city.a', 'dlq.access.api-key.a'])('%p is not the subject of an aggregate', (subject) => {
  expect(refOf(subject)).toBeUndefined();
});

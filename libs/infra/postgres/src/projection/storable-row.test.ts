import { describe, expect, test } from '@jest/globals';
import { storableRow, UnstorableRowError } from './storable-row.js';

describe('storableRow', () => {
  test('passes what PostgreSQL can keep', () => {
    const row = { text: 'é 😀', count: 1.5, at: new Date(0), nothing: null, isSo: true, document: { list: [1, 'a', { left: undefined }] } };
    expect(storableRow(row)).toBe(row);
    expect(storableRow(undefined)).toBeUndefined();
  });

  test.each([
    ['a NUL', { a: 'x\0' }],
    ['a NUL deep in a document', { a: { list: [{ b: 'x\0' }] } }],
    ['a NUL in a key', { a: { 'x\0': 1 } }],
    ['half a character', { a: '\ud800' }],
    ['infinity', { a: { b: Infinity } }],
    ['an invalid time', { a: new Date(Number.NaN) }],
    ['a missing column', { a: undefined }],
  ])('refuses %s and names the column', (_name, row) => {
    expect(() => storableRow(row)).toThrow(UnstorableRowError);
    expect(() => storableRow(row)).toThrow(/^a /);
  });
});

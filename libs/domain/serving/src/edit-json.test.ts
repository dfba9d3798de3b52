import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { editJson } from './edit-json.js';
import { JSON_KEYS_MAX, outlineJson, type JsonMember } from './json-outline.js';
import { readJson } from './read-json.js';

function membersOf(text: string): readonly JsonMember[] {
  const outline = outlineJson(text);
  if (outline.kind !== 'outline') throw new Error(`expected an outline, got ${outline.kind}`);
  return outline.members;
}

/** `JSON.parse` of Node 24.21 confuses keys that need an escape, so the oracle gets none of them. */
const plainKey = fc.string().filter((key) => JSON.stringify(key) === `"${key}"`);
const plainValue = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('\\'));

const nothing = { set: {}, remove: new Set<string>() };

describe('outlineJson', () => {
  test('finds the outermost members, whatever stands inside them', () => {
    const text = ' { "a" : [1, {"b":2}] ,"c\\u0064":"x\\",}" , "e":-1.50e+2 } ';
    expect(membersOf(text).map(({ key, valueStart, end }) => [key, text.slice(valueStart, end)])).toEqual([['a', '[1, {"b":2}]'], ['cd', '"x\\",}"'], ['e', '-1.50e+2']]);
  });

  test('stops at depth and count before anything is parsed', () => {
    expect(outlineJson('['.repeat(1_000_000)).kind).toBe('too-deep');
    expect(outlineJson(`${'['.repeat(64)}${']'.repeat(64)}`).kind).toBe('outline');
    expect(outlineJson(`${'['.repeat(65)}${']'.repeat(65)}`).kind).toBe('too-deep');
    expect(outlineJson(`[${'1,'.repeat(11)}1]`, 64, 10).kind).toBe('too-many-values');
  });

  test('lists of numbers are passed over, and counted where they could be too many', () => {
    const numbers = fc.array(fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })));
    fc.assert(fc.property(fc.dictionary(plainKey, fc.oneof(numbers, fc.array(numbers), fc.array(fc.oneof(fc.integer(), plainValue)))), fc.integer({ min: 0, max: 40 }), (value, valuesMax) => {
      const text = JSON.stringify(value);
      expect(outlineJson(text, 64, valuesMax)).toEqual(outlineJson(text, 64, valuesMax, true));
    }));
  });

  test('brackets inside strings count for nothing', () => {
    expect(outlineJson(JSON.stringify({ text: '['.repeat(1_000) })).kind).toBe('outline');
  });

  test('takes any text without failing', () => {
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', ' ', '1') }), (text) => {
      expect(['outline', 'too-deep']).toContain(outlineJson(text).kind);
    }));
  });

  test('its members are those of JSON.parse', () => {
    fc.assert(fc.property(fc.dictionary(plainKey, plainValue), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const read = membersOf(text).map(({ key, valueStart, end }) => [key, JSON.parse(text.slice(valueStart, end)) as unknown]);
      expect(read).toEqual(Object.entries(JSON.parse(text) as object));
    }));
  });
});

describe('editJson', () => {
  test('keeps every byte of what it does not touch', () => {
    const text = '{"seed": 9007199254740993, "temperature":1.0,"model":"public", "logit_bias":{"10":1,"9":2},"priority":7}';
    expect(editJson(text, membersOf(text), { set: { model: 'inner', stream_options: { include_usage: true } }, remove: new Set(['priority']) }))
      .toBe('{"seed": 9007199254740993,"temperature":1.0,"model":"inner","logit_bias":{"10":1,"9":2},"stream_options":{"include_usage":true}}');
  });

  test('of a key that stands there twice only the checked one stays, under an escape too', () => {
    const text = '{"max_tokens":5,"prior\\u0069ty":1,"max_tokens":7}';
    expect(editJson(text, membersOf(text), { set: {}, remove: new Set(['priority']) })).toBe('{"max_tokens":7}');
  });

  test('without changes it says the same as before', () => {
    fc.assert(fc.property(fc.dictionary(plainKey, plainValue), (value) => {
      const text = JSON.stringify(value);
      expect(editJson(text, membersOf(text), nothing)).toBe(text);
    }));
  });

  test('what is set is there, what is removed is gone, the rest is equal', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'model', 'ü');
    fc.assert(fc.property(fc.dictionary(key, fc.jsonValue()), fc.dictionary(key, fc.jsonValue()), fc.array(key as fc.Arbitrary<string>), (value, set, removed) => {
      const text = JSON.stringify(value, null, 1);
      const edited = JSON.parse(editJson(text, membersOf(text), { set, remove: new Set(removed) })) as object;
      const kept = Object.entries(JSON.parse(text) as object).filter(([name]) => !removed.includes(name));
      expect(edited).toEqual({ ...Object.fromEntries(kept), ...(JSON.parse(JSON.stringify(set)) as object) });
    }));
  });
});

describe('bodies that cost more to read than to send', () => {
  test('more keys than anybody needs are refused', () => {
    const withKeys = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join(',')}}`;
    expect(readJson(withKeys(JSON_KEYS_MAX + 1))).toMatchObject({ kind: 'fault', fault: { code: 'json_too_deep' } });
    expect(readJson(withKeys(1_000)).kind).toBe('read');
  });
});

import { describe, expect, test } from '@jest/globals';
import { chatCompletionRequest } from '@penstock/contract-http';
import fc from 'fast-check';
import { checkChatRequest } from './chat-request.js';
import { isPlainChat } from './plain-chat.js';
import { readJson } from './read-json.js';

const plain = { model: 'm', messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hi' }], max_tokens: 64, temperature: 0.7, top_p: 1, stream: true, seed: 7, stop: '\n', user: 'u' };

/** Values around every border that a field has, right and wrong ones. */
const value = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, '', 'text', 0, 1, -1, 2, 0.5, 2.01, 200, 201, 1.5, 10_000_000, 10_000_001, 1e300, NaN, [], {}, [{}], ['a'], 'x'.repeat(200), 'x'.repeat(201), 'x'.repeat(513)),
  fc.string({ maxLength: 5 }), fc.double({ min: -3, max: 3 }), fc.integer({ min: -3, max: 20 }),
);
const message = fc.record({ role: fc.oneof(fc.constantFrom('system', 'developer', 'user', 'assistant', 'tool', 'function', 'nobody'), value), content: fc.oneof(fc.string(), value), name: value, tool_calls: value }, { requiredKeys: [] });
const names = ['stream', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'seed', 'stop', 'user', 'n', 'tools', 'stream_options', 'logprobs', 'metadata', '__proto__', 'constructor', 'anything'];
const body = fc.tuple(
  fc.record({ model: fc.oneof(fc.constant('m'), value), messages: fc.oneof(fc.array(message, { maxLength: 3 }), fc.constant(plain.messages), value) }, { requiredKeys: [] }),
  fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 3 }),
).map(([fields, more]): unknown => JSON.parse(JSON.stringify({ ...fields, ...Object.fromEntries(more) })));

describe('a plain chat', () => {
  test('is what clients send most', () => {
    expect(isPlainChat(plain)).toBe(true);
    expect(isPlainChat({ model: 'm', messages: plain.messages })).toBe(true);
  });

  test.each([[{}], [null], [[]], [{ model: 'm' }], [{ messages: plain.messages }], [{ ...plain, messages: [] }], [{ ...plain, tools: [] }], [{ ...plain, n: 1 }], [{ ...plain, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }], [JSON.parse('{"model":"m","messages":[{"role":"user","content":"hi","__proto__":1}]}')], [JSON.parse('{"model":"m","messages":[{"role":"user","content":"hi"}],"__proto__":1}')]])('%j is not', (other) => {
    expect(isPlainChat(other)).toBe(false);
  });

  test('property: what is plain is valid by the schema, which changes nothing of it, and has none of the faults that are looked for later', () => {
    let plainOnes = 0;
    fc.assert(fc.property(body, (value) => {
      if (!isPlainChat(value)) return;
      plainOnes += 1;
      const parsed = chatCompletionRequest.safeParse(value);
      expect(parsed.error).toBeUndefined();
      expect(parsed.data).toEqual(value);
    }), { numRuns: 3_000 });
    expect(plainOnes).toBeGreaterThan(50);
  });

  test('property: a check gives the same for a body and for one that has a field more, which no plain chat has', () => {
    fc.assert(fc.property(body, (value) => {
      const check = (given: unknown) => {
        const read = readJson(JSON.stringify(given));
        return read.kind === 'read' ? checkChatRequest(read.document) : read;
      };
      const one = check(value);
      const other = check(typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, unknown_to_all: 1 } : value);
      expect(other).toEqual(one.kind === 'checked' ? { kind: 'checked', request: { ...one.request, unknown_to_all: 1 } } : one);
    }), { numRuns: 1_000 });
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ChatStream } from './chat-stream.js';
import { dialectOf } from './engine-dialect.js';
import type { EngineKind } from '@penstock/contract-events';
import { sseFrame } from './sse-frame.js';

const identity = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'pub"lic' };

/** One event as an engine may send it: ordinary ones, and ones that differ from them in every small way. */
const eventOf = fc.record({
  content: fc.oneof({ weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }) }, { weight: 1, arbitrary: fc.constantFrom('"', '\\', '\n', '\u2028', '"content":"x"', '', '😀') }),
  index: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
  finish: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom('stop', 'error') }),
  extra: fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.constantFrom<object>({ reasoning: 'r' }, { tool_calls: [{ index: 0, id: 'call_12345', function: { name: 'f', arguments: '' } }] }, { refusal: 'no' }) }),
  logprobs: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constant({ content: [{ token: 'a', logprob: -0.5 }] }) }),
  note: fc.constantFrom('n1', 'n1', 'n1', 'n\\u00e9', 'n\\u10e9'),
  tokens: fc.nat(2_000),
});

type Event = typeof eventOf extends fc.Arbitrary<infer Value> ? Value : never;

const shapes: Readonly<Record<string, { readonly kind: EngineKind; render(event: Event, count: number): string }>> = {
  vllm: {
    kind: 'vllm',
    render: ({ content, index, finish, extra, logprobs, tokens }, count) => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'inner', choices: [{ index, delta: { content, ...extra }, logprobs, finish_reason: finish, token_ids: [tokens] }], usage: { prompt_tokens: 7, total_tokens: 7 + count, completion_tokens: count } }),
  },
  'llama.cpp': {
    kind: 'llama.cpp',
    render: ({ content, index, finish, extra, logprobs, note }, count) => `{"choices":[{"finish_reason":${JSON.stringify(finish)},"index":${index},"delta":${JSON.stringify({ content, ...extra })},"logprobs":${JSON.stringify(logprobs)}}],"created":1,"note":"${note}","id":"x","object":"chat.completion.chunk","timings":{"cache_n":1,"prompt_n":6,"predicted_n":${count},"predicted_ms":${count}.0${count}}}`,
  },
  'index after the text': {
    kind: 'vllm',
    render: ({ content, index, finish }, count) => `{"choices":[{"delta":{"content":${JSON.stringify(content)}},"index":${index},"finish_reason":${JSON.stringify(finish)}}],"usage":{"prompt_tokens":7,"completion_tokens":${count}}}`,
  },
};

describe('events that are rewritten as text', () => {
  test.each(Object.entries(shapes))('are to the byte what parsing and writing them again gives: %s', (_name, { kind, render }) => {
    let rewritten = 0;
    fc.assert(fc.property(fc.array(eventOf, { maxLength: 12 }), fc.boolean(), (events, includeUsage) => {
      const [fast, slow] = [0, 1].map(() => new ChatStream(identity, { dialect: dialectOf(kind), includeUsage })) as [ChatStream, ChatStream];
      for (const [position, event] of events.entries()) {
        const data = render(event, position + 1);
        const expected = slow.push(data);
        const frame = fast.frameOf(data);
        if (frame === undefined) expect(fast.push(data)).toEqual(expected);
        else {
          rewritten += 1;
          expect([frame, 'open']).toEqual([expected.chunks.map(sseFrame).join(''), expected.outcome]);
        }
        if (position % 3 === 0) expect(fast.usage()).toEqual(slow.usage());
      }
      expect(fast.usage()).toEqual(slow.usage());
      expect(fast.end()).toEqual(slow.end());
    }), { numRuns: 300 });
    if (kind === 'vllm' && _name === 'vllm') expect(rewritten).toBeGreaterThan(50);
  });

  test('an event that is no JSON is not rewritten', () => {
    const stream = new ChatStream(identity, { dialect: dialectOf('vllm'), includeUsage: false });
    const event = (content: string, end = '') => `{"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":1}}${end}`;
    for (const content of ['a', 'b']) stream.push(event(content));
    expect(stream.frameOf(event('c'))).toBeDefined();
    for (const broken of [event('c', ' '), event('c\n'), event('c\\'), event('c').slice(0, -1), event('c').replace(':7,', ':07,'), event('c').replace(':7,', ':,'), event('')]) expect(stream.frameOf(broken)).toBeUndefined();
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SseDecoder, SSE_EVENT_MAX } from './sse-decoder.js';
import { sseComment, sseFrame } from './sse-frame.js';

function decode(pieces: readonly string[]): string[] {
  const decoder = new SseDecoder();
  return [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end()];
}

describe('SseDecoder', () => {
  test.each([
    ['line feeds', 'data: one\n\ndata: two\n\n', ['one', 'two']],
    ['carriage returns with line feeds', 'data: one\r\n\r\ndata: two\r\n\r\n', ['one', 'two']],
    ['carriage returns', 'data: one\r\rdata: two\r\r', ['one', 'two']],
    ['no space after the colon', 'data:{"a":1}\n\n', ['{"a":1}']],
    ['several lines', 'data: one\ndata: two\n\n', ['one\ntwo']],
    ['comments and other fields', ': keep-alive\nevent: x\nid: 1\n: ping\n\ndata: one\n\n', ['one']],
    ['a last event without its blank line', 'data: one\n\ndata: two', ['one', 'two']],
  ])('%s', (_name, text, expected) => {
    expect(decode([text])).toEqual(expected);
    expect(decode([...text])).toEqual(expected);
  });

  test('gives the same events however the stream is cut', () => {
    const event = fc.constantFrom('data: {"x":"a\\nb"}', 'data:1', ': c', 'data: ü😀', 'event: m\ndata: z');
    const ending = fc.constantFrom('\n\n', '\r\n\r\n', '\r\r');
    fc.assert(fc.property(fc.array(fc.tuple(event, ending)), fc.array(fc.nat(200)), (events, cuts) => {
      const text = events.map(([body, end]) => body.replaceAll('\n', end.slice(0, end.length / 2)) + end).join('');
      const at = [...new Set(cuts.filter((cut) => cut < text.length))].sort((left, right) => left - right);
      const pieces = [0, ...at].map((start, index) => text.slice(start, at[index] ?? text.length));
      expect(decode(pieces)).toEqual(decode([text]));
    }));
  });

  test('an event without an end is refused', () => {
    const decoder = new SseDecoder();
    expect(() => decoder.push(`data: ${'x'.repeat(SSE_EVENT_MAX)}`)).toThrow(RangeError);
  });
});

describe('frames', () => {
  test('content cannot end a frame early', () => {
    const value = { content: 'a\n\ndata: [DONE]\n\nevent: x\r\r\u2028' };
    expect(decode([sseComment('loading'), sseFrame(value)]).map((data) => JSON.parse(data) as unknown)).toEqual([value]);
  });
});

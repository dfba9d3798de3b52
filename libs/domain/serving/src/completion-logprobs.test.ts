import { expect, test } from '@jest/globals';
import { joinCompletionLogprobs, toCompletionLogprobs } from './completion-logprobs.js';

const chatShape = { content: [{ token: 'Par', logprob: -0.1, bytes: [80], top_logprobs: [{ token: 'Par', logprob: -0.1 }, { token: 'Lon', logprob: -3 }] }, { token: 'is', logprob: -0.2, top_logprobs: [] }] };

test('the shape of a chat becomes that of a completion', () => {
  expect(toCompletionLogprobs(chatShape, 10)).toEqual({ tokens: ['Par', 'is'], token_logprobs: [-0.1, -0.2], text_offset: [10, 13], top_logprobs: [{ Par: -0.1, Lon: -3 }, {}] });
});

test('its own shape stays, with offsets that go on, and null where nothing came before', () => {
  const piece = { tokens: ['a', 'b'], token_logprobs: [null, -1], text_offset: [0, 1], top_logprobs: [null, { b: -1 }] };
  expect(toCompletionLogprobs(piece, 4)).toEqual({ ...piece, text_offset: [4, 5] });
  expect(joinCompletionLogprobs(toCompletionLogprobs(piece, 0), toCompletionLogprobs(piece, 2))).toMatchObject({ tokens: ['a', 'b', 'a', 'b'], text_offset: [0, 1, 2, 3] });
});

test.each([[null], [undefined], ['x'], [{}]])('%p is none', (value) => {
  expect(toCompletionLogprobs(value, 0)).toBeNull();
  expect(joinCompletionLogprobs(null, null)).toBeNull();
});

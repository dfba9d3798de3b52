import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { normaliseAnswer } from './chat-answer.js';
import { ChatJoiner } from './chat-joiner.js';
import { ChatStream, OVERRUN_PIECES, type ChatChunk, type ChatStreamStep } from './chat-stream.js';
import { overrunFault } from './engine-fault.js';
import { dialectOf } from './engine-dialect.js';

const identity = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'public' };

/** As vLLM 0.32 sends it, trimmed. */
const vllm = [
  '{"id":"chatcmpl-ffff","object":"chat.completion.chunk","created":1,"model":"inner","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"usage":{"prompt_tokens":5,"total_tokens":5,"completion_tokens":0}}',
  '{"id":"chatcmpl-ffff","object":"chat.completion.chunk","created":1,"model":"inner","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null,"token_ids":[1]}],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}',
  '{"id":"chatcmpl-ffff","object":"chat.completion.chunk","created":1,"model":"inner","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":"length","stop_reason":null}],"system_fingerprint":"vllm-0.32.0-abcd","usage":{"prompt_tokens":5,"total_tokens":8,"completion_tokens":3}}',
  '{"id":"chatcmpl-ffff","object":"chat.completion.chunk","created":1,"model":"inner","choices":[],"usage":{"prompt_tokens":5,"total_tokens":8,"completion_tokens":3,"prompt_tokens_details":null}}',
  '[DONE]',
];
/** As llama.cpp's server sends it, trimmed. */
const llama = [
  '{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"chatcmpl-xyz","model":"/models/a.gguf","system_fingerprint":"b1","object":"chat.completion.chunk","timings":{"cache_n":3,"prompt_n":2,"predicted_n":1}}',
  '{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello"}}],"created":1,"id":"chatcmpl-xyz","model":"/models/a.gguf","object":"chat.completion.chunk","timings":{"cache_n":3,"prompt_n":2,"predicted_n":1}}',
  '{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"chatcmpl-xyz","model":"/models/a.gguf","object":"chat.completion.chunk"}',
  '{"choices":[],"created":1,"id":"chatcmpl-xyz","model":"/models/a.gguf","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":5,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":3}},"timings":{"cache_n":3,"prompt_n":2,"predicted_n":2}}',
  '[DONE]',
];

function run(events: readonly string[], kind: 'vllm' | 'llama.cpp' = 'vllm', includeUsage = true): { stream: ChatStream; chunks: ChatChunk[]; outcome: ChatStreamStep['outcome'] } {
  const stream = new ChatStream(identity, { dialect: dialectOf(kind), includeUsage });
  const chunks: ChatChunk[] = [];
  let outcome: ChatStreamStep['outcome'] = 'open';
  for (const event of events) {
    const step = stream.push(event);
    chunks.push(...step.chunks);
    outcome = step.outcome;
  }
  return { stream, chunks, outcome };
}

const textOf = (chunks: readonly ChatChunk[]): string => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');

describe('a stream of any engine becomes one of OpenAI', () => {
  test.each([['vllm', vllm, 'length', 3], ['llama.cpp', llama, 'stop', 2]] as const)('%s', (kind, events, finish, tokens) => {
    const { stream, chunks, outcome } = run(events, kind);
    expect(outcome).toBe('completed');
    expect(textOf(chunks)).toBe('Hello');
    expect(chunks[0]?.choices[0]).toEqual({ index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null });
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.role !== undefined)).toHaveLength(1);
    expect(chunks.at(-2)?.choices).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: finish }]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: 5 + tokens } });
    for (const chunk of chunks.slice(0, -1)) expect(chunk).toMatchObject({ ...identity, object: 'chat.completion.chunk', usage: null });
    expect(stream.usage()).toMatchObject({ promptTokens: 5, completionTokens: tokens, known: true });
    expect(stream.finishReason()).toBe(finish);
    expect(JSON.stringify(chunks)).not.toMatch(/inner|gguf|timings|token_ids|fingerprint|stop_reason|ffff|xyz/);
  });

  test('without include_usage no chunk has the key', () => {
    const { chunks, outcome } = run(vllm, 'vllm', false);
    expect(outcome).toBe('completed');
    for (const chunk of chunks) expect(chunk).not.toHaveProperty('usage');
    expect(chunks.every((chunk) => chunk.choices.length === 1)).toBe(true);
  });

  test('tool calls: identity once, then arguments only', () => {
    const call = (delta: object) => JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }] });
    const { chunks } = run([
      call({ content: null, tool_calls: [{ id: 'chatcmpl-tool-9', type: 'function', index: 0, function: { name: 'f' } }] }),
      call({ tool_calls: [{ index: 0, id: '', type: '', function: { name: null, arguments: '{"a"' } }] }),
      call({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      call({ tool_calls: [{ index: 1, id: 'call_abcd', type: 'function', function: { name: 'g', arguments: '' } }] }),
    ]);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: 'assistant', content: null, refusal: null },
      { tool_calls: [{ index: 0, id: 'call_1_0_0', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
      { tool_calls: [{ index: 1, id: 'call_abcd', type: 'function', function: { name: 'g', arguments: '' } }] },
    ]);
  });

  test('logprobs pass to the last token, and so do calls of functions', () => {
    const entry = { token: '', logprob: -0.1, bytes: [], top_logprobs: [{ token: 'a', logprob: -2, bytes: null }] };
    const ofEngine = { ...entry, id: 7, top_logprobs: [{ id: 8, token: 'a', logprob: -2 }] };
    const last = run([vllm[0] ?? '', JSON.stringify({ choices: [{ index: 0, delta: { content: '' }, logprobs: { content: [ofEngine] }, finish_reason: 'stop' }] })]).chunks.map((chunk) => chunk.choices[0]);
    expect(last.slice(1)).toEqual([{ index: 0, delta: { content: '' }, logprobs: { content: [entry], refusal: null }, finish_reason: null }, { index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }]);
    const call = (delta: object, finish: string | null = null) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] });
    const { chunks } = run([call({ role: 'assistant', function_call: { name: 'f', arguments: '' } }), call({ function_call: { name: null, arguments: '{}' } }), call({}, 'function_call')]);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta).slice(1)).toEqual([{ function_call: { name: 'f', arguments: '' } }, { function_call: { arguments: '{}' } }, {}]);
  });

  test.each<[string, readonly string[]]>([
    ['[DONE] without a finish', [...vllm.slice(0, 2), '[DONE]']],
    ['[DONE] alone', ['[DONE]']],
    ['garbage', [vllm[0] ?? '', '<html>']],
    ['a finish reason of the engine\'s own', [vllm[0] ?? '', '{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}']],
    ['an error event under status 200', [vllm[0] ?? '', '{"error": {"message": "EngineCore encountered an issue. See stack trace", "type": "InternalServerError", "param": null, "code": 500}}', '[DONE]']],
    ['one of two choices unfinished', ['{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{"content":"a"},"finish_reason":null}]}', '[DONE]']],
  ])('%s is a failure, and nothing of the engine is told', (_name, events) => {
    const { outcome, chunks } = run(events);
    expect(outcome).toMatchObject({ code: expect.stringMatching(/^(replica_failed|engine_response_invalid)$/), message: expect.not.stringContaining('EngineCore') });
    expect(chunks.some((chunk) => chunk.choices.length === 0)).toBe(false);
  });

  test('usage never shrinks, and with several choices the role comes once each', () => {
    fc.assert(fc.property(fc.array(fc.record({ index: fc.nat(2), text: fc.string(), finish: fc.constantFrom(null, 'stop') }), { minLength: 1 }), (events) => {
      const stream = new ChatStream(identity, { dialect: dialectOf('vllm'), includeUsage: false });
      const roles: number[] = [];
      let tokens = 0;
      for (const { index, text, finish } of events) {
        const { chunks } = stream.push(JSON.stringify({ choices: [{ index, delta: { role: 'assistant', content: text }, finish_reason: finish }] }));
        roles.push(...chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.delta.role !== undefined).map((choice) => choice.index)));
        expect(stream.usage().completionTokens).toBeGreaterThanOrEqual(tokens);
        tokens = stream.usage().completionTokens;
      }
      expect(new Set(roles).size).toBe(roles.length);
    }));
  });
});

describe('a limit that the engine does not keep', () => {
  const chunk = (content: string): string => JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  const claim = (tokens: number): string => JSON.stringify({ object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 5, completion_tokens: tokens } });
  const streamOf = (): ChatStream => new ChatStream(identity, { dialect: dialectOf('vllm'), includeUsage: true, tokensMax: 8 });

  test('more tokens claimed than were allowed are not believed: what came is counted', () => {
    const stream = streamOf();
    for (const content of ['a', 'b', 'c']) stream.push(chunk(content));
    stream.push(claim(9_000));
    expect(stream.usage()).toMatchObject({ promptTokens: 5, completionTokens: 3, known: false });
  });

  test('a claim up to the limit is believed', () => {
    const stream = streamOf();
    stream.push(chunk('several tokens in one piece'));
    stream.push(claim(8));
    expect(stream.usage()).toMatchObject({ completionTokens: 8, known: true });
  });

  test('an answer that goes on beyond the limit is ended, over the fast path as well', () => {
    const stream = streamOf();
    const taken = Array.from({ length: 8 + OVERRUN_PIECES + 1 }, (_, index) => stream.frameOf(chunk(`t${index}`)) ?? stream.push(chunk(`t${index}`)));
    const failed = taken.filter((step) => typeof step === 'object' && step.outcome !== 'open');
    expect(failed).toEqual([]);
    expect(stream.push(chunk('one more'))).toMatchObject({ outcome: overrunFault });
  });
});

describe('whole answers', () => {
  const vllmAnswer = '{"id":"chatcmpl-ffff","object":"chat.completion","created":1,"model":"inner","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-x","usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2,"prompt_tokens_details":null},"prompt_logprobs":null,"kv_transfer_params":null}';

  test('lose everything of the engine\'s own', () => {
    expect(normaliseAnswer(200, vllmAnswer, identity, dialectOf('vllm'))).toEqual({
      kind: 'answer',
      finishReason: 'stop',
      usage: expect.objectContaining({ promptTokens: 5, completionTokens: 2, known: true }),
      answer: {
        ...identity,
        object: 'chat.completion',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hello', refusal: null }, logprobs: null, finish_reason: 'stop' }],
        usage: expect.objectContaining({ prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }),
      },
    });
  });

  test('keep a call of a function', () => {
    const body = { choices: [{ index: 0, message: { content: null, function_call: { name: 'f', arguments: '{}' } }, finish_reason: 'function_call' }] };
    expect(normaliseAnswer(200, JSON.stringify(body), identity, dialectOf('vllm'))).toMatchObject({ kind: 'answer', answer: { choices: [{ message: { content: null, function_call: { name: 'f', arguments: '{}' } }, finish_reason: 'function_call' }] } });
  });

  test.each([
    [400, '{"error":{"code":400,"message":"request exceeds context","type":"exceed_context_size_error","n_prompt_tokens":3000,"n_ctx":2048}}', 'context_length_exceeded'],
    [500, 'Internal Server Error', 'replica_failed'],
    [503, '{"error":{"message":"busy","type":"unavailable_error","code":503}}', 'no_capacity'],
    [200, '{"choices":[]}', 'engine_response_invalid'],
    [200, '<html>', 'engine_response_invalid'],
    [200, '{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":null}]}', 'engine_response_invalid'],
  ])('status %i with %s is %s', (status, text, code) => {
    expect(normaliseAnswer(status, text, identity, dialectOf('llama.cpp'))).toMatchObject({ kind: 'fault', fault: { code } });
  });

  test('a joined stream says what the whole answer would', () => {
    const { chunks, stream } = run(vllm, 'vllm', false);
    const joiner = new ChatJoiner();
    for (const chunk of chunks) joiner.add(chunk);
    expect(joiner.answer(identity, stream.usage())).toMatchObject({ ...identity, object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'length' }], usage: { completion_tokens: 3 } });
  });
});

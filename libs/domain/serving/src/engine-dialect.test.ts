import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { dialectOf } from './engine-dialect.js';
import { addUsage, noteFinish, noUsage, type RunningUsage, type UsageReading } from './engine-usage.js';

const llama = dialectOf('llama.cpp');
const vllm = dialectOf('vllm');

/** Folds as the gateway does: the finish is noted before the next chunk. */
function fold(dialect: typeof llama, chunks: readonly unknown[]): RunningUsage {
  return chunks.reduce<RunningUsage>((usage, chunk) => {
    const reading = dialect.readUsage(chunk);
    const read = reading === undefined ? usage : addUsage(usage, reading);
    const choices = (chunk as { choices: { index: number; finish_reason: string | null }[] }).choices;
    return choices[0]?.finish_reason ? noteFinish(read, choices[0].index) : read;
  }, noUsage);
}

const llamaChunk = (index: number, produced: number, finish: string | null = null) => ({
  object: 'chat.completion.chunk', choices: [{ index, delta: finish === null ? { content: 'x' } : {}, finish_reason: finish }],
  ...(finish === null ? { timings: { cache_n: 34, prompt_n: 1, predicted_n: produced } } : {}),
});
const llamaUsage = (completion: number) => ({ object: 'chat.completion.chunk', choices: [], usage: { completion_tokens: completion, prompt_tokens: 35, total_tokens: 35 + completion, prompt_tokens_details: { cached_tokens: 34 } } });

describe('llama.cpp', () => {
  test('asks for timings with every token of a stream', () => {
    expect(llama.fieldsToSet({ stream: true })).toEqual({ stream_options: { include_usage: true }, timings_per_token: true });
    expect(llama.fieldsToSet({ stream: false })).toEqual({});
  });

  test('two choices: each usage chunk counts for the choice that finished last, as recorded from the engine', () => {
    const chunks = [llamaChunk(1, 1), llamaChunk(0, 1), llamaChunk(1, 2), llamaChunk(0, 2), llamaChunk(1, 6, 'length'), llamaUsage(6), llamaChunk(0, 5), llamaChunk(0, 7, 'stop'), llamaUsage(7)];
    expect(fold(llama, chunks.slice(0, 4))).toMatchObject({ completionTokens: 4, promptTokens: 35, cachedTokens: 34 });
    expect(fold(llama, chunks)).toMatchObject({ completionTokens: 13, promptTokens: 35, byChoice: { 0: 7, 1: 6 } });
  });

  test('its errors, in the platform\'s words', () => {
    expect(llama.readFault(400, { error: { code: 400, message: 'request (3031 tokens) exceeds the available context size', type: 'exceed_context_size_error', n_prompt_tokens: 3_031, n_ctx: 2_048 } })).toEqual({
      code: 'context_length_exceeded', param: 'messages', retryElsewhere: false,
      message: "This model's maximum context length is 2048 tokens. However, your messages resulted in 3031 tokens. Please reduce the length of the messages.",
    });
    expect(llama.readFault(503, { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } })?.code).toBe('model_loading');
    expect(llama.readFault(400, { error: { code: 400, message: "Expected 'messages' to be an array", type: 'invalid_request_error' } })).toMatchObject({ code: 'request_rejected_by_engine', retryElsewhere: false });
    expect(llama.readFault(404, { error: { message: 'File Not Found', type: 'not_found_error', code: 404 } })?.code).toBe('replica_failed');
    expect(llama.readFault(200, { choices: [] })).toBeUndefined();
  });

  test.each([
    ['image input is not supported - hint: if this is unexpected, you may need to provide the mmproj', 'unsupported_value', 'This model takes no image input. Send text alone, or choose a model that does.'],
    ['Failed to parse tools: Unsupported tool type: {"type":"custom"}; tools = [\n  {\n', 'request_rejected_by_engine', 'Failed to parse tools: Unsupported tool type.'],
    ["Failed to parse messages: [json.exception.out_of_range.403] key 'text' not found", 'request_rejected_by_engine', "Failed to parse messages: [json.exception.out_of_range.403] key 'text' not found"],
    ['[json.exception.type_error.302] type must be string, but is number', 'request_rejected_by_engine', '[json.exception.type_error.302] type must be string, but is number'],
    ['vector::_M_range_check: __n (which is 99999999) >= this->size() (which is 49152)', 'request_rejected_by_engine', "A token id is none of this model's vocabulary."],
  ])('says 500 to faults of the caller, which no other replica is asked about: %s', (message, code, told) => {
    expect(llama.readFault(500, { error: { code: 500, message, type: 'server_error' } })).toMatchObject({ code, message: told, retryElsewhere: false });
  });
});

describe('vLLM', () => {
  const chunk = (index: number, completion: number) => ({ object: 'chat.completion.chunk', choices: [{ index, delta: { content: 'x' }, finish_reason: null }], usage: { prompt_tokens: 9, completion_tokens: completion, total_tokens: 9 + completion } });

  test('continuous usage counts its own choice, the last chunk all of them', () => {
    const last = { object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 } };
    expect(fold(vllm, [chunk(0, 1), chunk(1, 1), chunk(0, 2)]).completionTokens).toBe(3);
    expect(fold(vllm, [chunk(0, 1), chunk(1, 1), chunk(0, 2), last]).completionTokens).toBe(5);
  });

  test.each([
    '{"object":"error","message":"M","type":"BadRequestError","param":null,"code":400}', '{"statusCode":400,"message":"M"}', '{"detail":"M"}', '{"error":"M"}', '{"error":{"object":"error","message":"M","type":"x","code":400}}',
  ])('an error of any shape keeps its words: %s', (text) => {
    const words = (message: string) => vllm.readFault(400, JSON.parse(text.replace('M', message)));
    expect(words('no tools here')).toMatchObject({ code: 'request_rejected_by_engine', message: 'no tools here' });
    expect(words("This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens")).toMatchObject({ code: 'context_length_exceeded', message: expect.stringContaining('2048') });
  });

  test('an error in a stream is one with the status that the engine meant', () => {
    expect(vllm.readFault(200, { object: 'error', message: 'bad', type: 'BadRequestError', code: 400 })).toMatchObject({ code: 'request_rejected_by_engine', message: 'bad' });
    expect(vllm.readFault(200, { error: { message: 'bad', http_status_code: 422 } })).toMatchObject({ code: 'request_rejected_by_engine', message: 'bad' });
  });

  test('a dead engine under status 200 is a fault that names nothing of the inside', () => {
    const fault = vllm.readFault(200, { error: { message: 'EngineCore encountered an issue. See stack trace (above) for the root cause.', type: 'InternalServerError', param: null, code: 500 } });
    expect(fault).toMatchObject({ code: 'replica_failed', retryElsewhere: true });
    expect(fault?.message).not.toContain('EngineCore');
  });

  test.each([
    [503, { error: { message: 'The engine is currently busy', type: 'Service Unavailable', param: null, code: 503 } }, 'no_capacity'],
    [400, { error: { message: "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, which exceeds", type: 'BadRequestError', param: 'input_tokens', code: 400 } }, 'context_length_exceeded'],
    [401, { error: 'Unauthorized' }, 'replica_failed'],
    [404, { error: { message: 'The model `x` does not exist.', type: 'NotFoundError', param: 'model', code: 404 } }, 'replica_failed'],
    [404, { detail: 'Not Found' }, 'replica_failed'],
    [400, { error: { message: 'max_tokens must be at least 1', type: 'BadRequestError', param: 'max_tokens', code: 400 } }, 'request_rejected_by_engine'],
    [500, { error: { message: 'cannot schedule new futures after shutdown', type: 'InternalServerError', param: null, code: 500 } }, 'replica_failed'],
    [502, undefined, 'replica_failed'],
  ])('%i %j', (status, body, code) => {
    expect(vllm.readFault(status, body)?.code).toBe(code);
  });

  test('the cache salt is ours, and the fields that steer are stripped', () => {
    expect(vllm.fieldsToSet({ stream: true, cacheSalt: 'org1' })).toEqual({ stream_options: { include_usage: true, continuous_usage_stats: true }, cache_salt: 'org1' });
    for (const field of ['priority', 'cache_salt', 'request_id', 'chat_template', 'kv_transfer_params']) {
      expect(vllm.fieldsToStrip).toContain(field);
      expect(llama.fieldsToStrip).toContain(field);
    }
  });
});

describe('running usage', () => {
  const reading = fc.record({
    scope: fc.constantFrom('request' as const, 'choice' as const, 'finished-choice' as const), choice: fc.nat(3),
    promptTokens: fc.nat(100), cachedTokens: fc.option(fc.nat(200)), completionTokens: fc.nat(1_000), reasoningTokens: fc.option(fc.nat(10)),
  }) satisfies fc.Arbitrary<UsageReading>;

  test('never shrinks, and cached tokens are part of the prompt', () => {
    fc.assert(fc.property(fc.array(reading, { maxLength: 30 }), (readings) => {
      let usage = noUsage;
      for (const one of readings) {
        const next = addUsage(usage, one);
        expect(next.completionTokens).toBeGreaterThanOrEqual(usage.completionTokens);
        expect(next.promptTokens).toBeGreaterThanOrEqual(usage.promptTokens);
        expect(next.cachedTokens).toBeLessThanOrEqual(next.promptTokens);
        usage = next;
      }
    }));
  });

  test('reading any JSON never throws', () => {
    fc.assert(fc.property(fc.jsonValue(), fc.constantFrom(llama, vllm), (body, dialect) => {
      expect(() => [dialect.readUsage(body), dialect.readFault(200, body), dialect.readFault(400, body)]).not.toThrow();
    }));
  });
});

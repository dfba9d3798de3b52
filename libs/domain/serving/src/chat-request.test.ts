import { describe, expect, test } from '@jest/globals';
import type { ApiFault } from '@penstock/contract-http';
import { checkChatRequest, contextFault, toEngineRequest } from './chat-request.js';
import { dialectOf } from './engine-dialect.js';
import { readJson, type JsonDocument } from './read-json.js';

function read(text: string): JsonDocument {
  const outcome = readJson(text);
  if (outcome.kind === 'fault') throw new Error(outcome.fault.message);
  return outcome.document;
}

function faultOf(body: unknown): ApiFault | undefined {
  const checked = checkChatRequest(read(JSON.stringify(body)));
  return checked.kind === 'fault' ? checked.fault : undefined;
}

const valid = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

describe('a chat request is refused in the words of the field', () => {
  test.each<[string, unknown, string, string | undefined]>([
    ['no messages', { model: 'm' }, 'missing_required_parameter', 'messages'],
    ['no model', { messages: valid.messages }, 'missing_required_parameter', 'model'],
    ['empty messages', { ...valid, messages: [] }, 'empty_array', 'messages'],
    ['messages of a wrong type', { ...valid, messages: 'hi' }, 'invalid_type', 'messages'],
    ['max_tokens below 1', { ...valid, max_tokens: 0 }, 'integer_below_min_value', 'max_tokens'],
    ['a negative max_tokens', { ...valid, max_tokens: -5 }, 'integer_below_min_value', 'max_tokens'],
    ['max_tokens that is no integer', { ...valid, max_tokens: 1.5 }, 'invalid_type', 'max_tokens'],
    ['a temperature that is text', { ...valid, temperature: 'hot' }, 'invalid_type', 'temperature'],
    ['a temperature too high', { ...valid, temperature: 3 }, 'integer_above_max_value', 'temperature'],
    ['n beyond the limit', { ...valid, n: 16_384 }, 'integer_above_max_value', 'n'],
    ['an unknown role', { ...valid, messages: [{ role: 'robot', content: 'x' }] }, 'invalid_value', 'messages[0].role'],
    ['a message without a role', { ...valid, messages: [{ content: 'x' }] }, 'missing_required_parameter', 'messages[0].role'],
    ['a message that is text', { ...valid, messages: ['hi'] }, 'invalid_type', 'messages[0]'],
    ['content that is a number', { ...valid, messages: [{ role: 'user', content: 7 }] }, 'invalid_type', 'messages[0].content'],
    ['a tool answer without its call', { ...valid, messages: [{ role: 'tool', content: 'x' }] }, 'missing_required_parameter', 'messages[0].tool_call_id'],
    ['a response format that does not exist', { ...valid, response_format: { type: 'yaml' } }, 'invalid_value', 'response_format.type'],
    ['stream options without a stream', { ...valid, stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
    ['five stop strings', { ...valid, stop: ['1', '2', '3', '4', '5'] }, 'invalid_value', 'stop'],
    ['an image on the network', { ...valid, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/' } }] }] }, 'unsupported_value', 'messages[0].content[0].image_url'],
    ['an address deeper in a part', { ...valid, messages: [{ role: 'user', content: [{ type: 'file', file: { file_url: 'http://127.0.0.1/' } }] }] }, 'unsupported_value', 'messages[0].content[0].file'],
    ['a file of the engine', { ...valid, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] }] }, 'unsupported_value', 'messages[0].content[0].image_url'],
    ['a seed that is no whole number', { ...valid, seed: 1.5 }, 'invalid_value', 'seed'],
    ['seventeen pairs of metadata', { ...valid, metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }, 'invalid_value', 'metadata'],
    ['a long key of metadata', { ...valid, metadata: { ['k'.repeat(65)]: 'v' } }, 'invalid_value', `metadata.${'k'.repeat(65)}`],
    ['a long safety identifier', { ...valid, safety_identifier: 'x'.repeat(65) }, 'invalid_value', 'safety_identifier'],
    ['no functions', { ...valid, functions: [] }, 'empty_array', 'functions'],
    ['too many functions', { ...valid, functions: Array.from({ length: 129 }, () => ({ name: 'f' })) }, 'invalid_value', 'functions'],
    ['a text without text', { ...valid, messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'missing_required_parameter', 'messages[0].content[0].text'],
    ['an image without an address', { ...valid, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }, 'missing_required_parameter', 'messages[0].content[0].image_url.url'],
    ['sound without its form', { ...valid, messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA' } }] }] }, 'missing_required_parameter', 'messages[0].content[0].input_audio.format'],
    ['a tool without its function', { ...valid, tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].function'],
    ['a tool whose parameters are text', { ...valid, tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] }, 'invalid_type', 'tools[0].function.parameters'],
    ['a call without its function', { ...valid, messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function' }] }] }, 'missing_required_parameter', 'messages[0].tool_calls[0].function'],
    ['a schema without a name', { ...valid, response_format: { type: 'json_schema', json_schema: { schema: {} } } }, 'missing_required_parameter', 'response_format.json_schema.name'],
    ['a schema that is a number', { ...valid, response_format: { type: 'json_schema', json_schema: { name: 'n', schema: 5 } } }, 'invalid_type', 'response_format.json_schema.schema'],
    ['an array', [], 'invalid_type', undefined],
    ['null', null, 'invalid_type', undefined],
  ])('%s', (_name, body, code, param) => {
    expect(faultOf(body)).toMatchObject({ code, ...(param === undefined ? {} : { param }) });
  });

  test('a name of the client\'s own is not repeated whole', () => {
    const fault = faultOf({ ...valid, metadata: { ['k'.repeat(10_000)]: 'v' } });
    expect([fault?.code, (fault?.message ?? '').length < 300, fault?.message]).toEqual(['invalid_value', true, expect.stringContaining('longer than 64 characters')]);
  });

  test('null stands for what is not set, and unknown fields pass', () => {
    expect(faultOf({ ...valid, max_tokens: null, temperature: null, tools: null, tool_choice: null, stop: null, n: null, stream: null, stream_options: null, top_k: 3 })).toBeUndefined();
  });

  test('broken and deep JSON', () => {
    expect(readJson('{"a":')).toMatchObject({ kind: 'fault', fault: { code: 'invalid_json' } });
    expect(readJson(`{"a":${'['.repeat(100_000)}`)).toMatchObject({ kind: 'fault', fault: { code: 'json_too_deep' } });
  });

  test('a key in escapes is the key it stands for, whatever was parsed before', () => {
    const prefix = '{"model":"m","messages":[{"role":"user","content":"hi"}]';
    for (const poison of ['\\\\', 'image_ur\\\\', 'max_tok\\\\u0']) readJson(`${prefix},"${poison}":1}`);
    for (const [key, name] of [['\\u006e', 'n'], ['max_tok\\u0065ns', 'max_tokens']] as const) {
      expect(checkChatRequest(read(`${prefix},"${key}":-1}`))).toMatchObject({ kind: 'fault', fault: { code: 'integer_below_min_value', param: name } });
    }
  });

  test('more tokens than the context holds', () => {
    expect(contextFault({ ...valid, messages: [], max_tokens: 4_096 }, 2_048)).toMatchObject({ code: 'integer_above_max_value', param: 'max_tokens' });
    expect(contextFault({ ...valid, messages: [], max_completion_tokens: 2_048 }, 2_048)).toBeUndefined();
  });
});

describe('what the engine gets', () => {
  const text = '{"model":"public","messages":[{"role":"user","content":"hi"}],"seed":9007199254740993,"stream":true,"stream_options":{"include_usage":false},"max_completion_tokens":9,"priority":1,"cache_salt":"x","chat_template":"y","id_slot":3,"n_predict":99,"top_k":40}';

  function engineBody(kind: 'vllm' | 'llama.cpp', stream: boolean): string {
    const document = read(text);
    const checked = checkChatRequest(document);
    if (checked.kind === 'fault') throw new Error(checked.fault.message);
    return toEngineRequest(document, checked.request, { servedModel: 'inner', dialect: dialectOf(kind), stream, cacheSalt: 'salt' });
  }

  test('has the inner name, asks for usage, and nothing that steers the engine', () => {
    const body = JSON.parse(engineBody('vllm', true)) as Record<string, unknown>;
    expect(body).toMatchObject({ model: 'inner', stream: true, stream_options: { include_usage: true, continuous_usage_stats: true }, max_tokens: 9, top_k: 40, cache_salt: 'salt' });
    for (const field of ['priority', 'chat_template']) expect(body).not.toHaveProperty(field);
    const llama = JSON.parse(engineBody('llama.cpp', true)) as Record<string, unknown>;
    expect(llama).toMatchObject({ model: 'inner', timings_per_token: true, stream_options: { include_usage: true }, max_tokens: 9 });
    for (const field of ['id_slot', 'n_predict', 'cache_salt']) expect(llama).not.toHaveProperty(field);
  });

  test('keeps the digits of a large seed', () => {
    expect(engineBody('vllm', true)).toContain('"seed":9007199254740993');
  });

  test('has no stream options without a stream', () => {
    const body = JSON.parse(engineBody('vllm', false)) as Record<string, unknown>;
    expect(body['stream']).toBe(false);
    expect(body).not.toHaveProperty('stream_options');
  });
});

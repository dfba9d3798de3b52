import { describe, expect, test } from '@jest/globals';
import { responseRequest } from '@penstock/contract-http';
import { readJson } from './read-json.js';
import { toChatBody } from './response-request.js';

function translate(text: string, earlier: Parameters<typeof toChatBody>[2] = []) {
  const read = readJson(text);
  if (read.kind === 'fault') throw new Error(read.fault.message);
  return toChatBody(read.document, responseRequest.parse(read.document.value), earlier);
}

const chatOf = (body: object): unknown => {
  const translated = translate(JSON.stringify({ model: 'm', ...body }));
  return translated.kind === 'chat' ? JSON.parse(translated.text) : translated.fault;
};

describe('a response as a chat', () => {
  test('a text is a message of the user, instructions come first', () => {
    expect(chatOf({ input: 'hi', instructions: 'be brief', max_output_tokens: 5, reasoning: { effort: 'low' }, top_k: 3, store: true })).toEqual({
      model: 'm', messages: [{ role: 'system', content: 'be brief' }, { role: 'user', content: 'hi' }], stream: false, max_completion_tokens: 5, reasoning_effort: 'low', top_k: 3,
    });
  });

  test('what means the same in a chat keeps its bytes, and several choices are none of a response', () => {
    const translated = translate('{"model":"m","input":"hi","seed":9007199254740993,"top_k":1.0,"n":3,"messages":[],"store":false}');
    expect(translated).toEqual({ kind: 'chat', text: '{"model":"m","seed":9007199254740993,"top_k":1.0,"messages":[{"role":"user","content":"hi"}],"stream":false}' });
  });

  test('calls of tools and what they gave belong to the turn they were made in', () => {
    const input = [
      { role: 'user', content: 'weather?' }, { type: 'reasoning', summary: [] },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' }, { type: 'function_call', call_id: 'c2', name: 'g', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'sun' }, { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'rain' }] },
    ];
    const calls = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } }];
    expect(chatOf({ input })).toMatchObject({ messages: [
      { role: 'user', content: 'weather?' }, { role: 'assistant', content: null, tool_calls: calls }, { role: 'tool', tool_call_id: 'c1', content: 'sun' }, { role: 'tool', tool_call_id: 'c2', content: 'rain' },
    ] });
  });

  test('tools, their choice and the form of the text take the shapes of a chat', () => {
    const schema = { type: 'object' };
    expect(chatOf({
      input: 'x', tools: [{ type: 'function', name: 'f', parameters: schema, strict: true }], tool_choice: { type: 'function', name: 'f' }, text: { format: { type: 'json_schema', name: 'n', schema, strict: true } },
    })).toMatchObject({
      tools: [{ type: 'function', function: { name: 'f', parameters: schema, strict: true } }], tool_choice: { type: 'function', function: { name: 'f' } }, response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
    });
  });

  test('pictures stay parts, texts become one, and other parts are refused by name', () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'low' };
    expect(chatOf({ input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }, { type: 'input_text', text: 'b' }] }] })).toMatchObject({ messages: [{ content: 'a\nb' }] });
    expect(chatOf({ input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }, image] }] })).toMatchObject({ messages: [{ content: [{ type: 'text', text: 'a' }, { type: 'image_url', image_url: { url: image.image_url, detail: 'low' } }] }] });
    expect(chatOf({ input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] })).toMatchObject({ code: 'unsupported_value', param: 'input[0].content[0].type' });
  });
});

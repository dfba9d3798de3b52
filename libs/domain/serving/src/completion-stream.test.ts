import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CompletionJoiner, readCompletion } from './completion-answer.js';
import { checkCompletionRequest, echoOf, promptsOf, toEngineCompletion } from './completion-request.js';
import { CompletionStream } from './completion-stream.js';
import { dialectOf } from './engine-dialect.js';
import { readJson } from './read-json.js';

const identity = { id: 'cmpl-1', created: 1, model: 'public' };
const llama = dialectOf('llama.cpp');
const options = { dialect: llama, includeUsage: false, firstIndex: 2, choices: 2, prefix: 'said: ' };
const event = (index: number, text: string, finish: string | null, usage?: object) => JSON.stringify({ object: 'text_completion', model: 'inner', choices: [{ index, text, logprobs: null, finish_reason: finish }], ...(usage === undefined ? {} : { usage }) });

function documentOf(body: string) {
  const read = readJson(body);
  if (read.kind === 'fault') throw new Error(read.fault.message);
  const checked = checkCompletionRequest(read.document);
  if (checked.kind === 'fault') throw new Error(checked.fault.message);
  return { document: read.document, request: checked.request };
}

describe('a stream of llama.cpp', () => {
  test('is numbered through, prefixed once for each choice, and counts both', () => {
    const stream = new CompletionStream(identity, options);
    const joiner = new CompletionJoiner();
    const steps = [event(0, 'a', null), event(1, 'x', null), event(0, 'b', 'stop', { prompt_tokens: 4, completion_tokens: 2 }), event(1, '', 'length', { prompt_tokens: 4, completion_tokens: 3 }), '[DONE]'].map((data) => stream.push(data));
    expect(steps.at(-1)?.outcome).toBe('completed');
    for (const chunk of steps.flatMap((step) => step.chunks)) joiner.add(chunk);
    expect(joiner.finished()).toMatchObject([{ index: 2, text: 'said: ab', finish_reason: 'stop' }, { index: 3, text: 'said: x', finish_reason: 'length' }]);
    expect(stream.usage()).toMatchObject({ promptTokens: 4, completionTokens: 5, known: true });
  });

  test('that ends before every choice did is broken', () => {
    const stream = new CompletionStream(identity, options);
    stream.push(event(0, 'a', 'stop'));
    expect(stream.end().outcome).toMatchObject({ code: 'engine_response_invalid' });
  });

  test('of any cut gives the same text as the whole', () => {
    fc.assert(fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 8 }), (pieces) => {
      const own = { ...options, choices: 1, prefix: '', firstIndex: 0 };
      const stream = new CompletionStream(identity, own);
      const joiner = new CompletionJoiner();
      for (const [position, piece] of pieces.entries()) for (const chunk of stream.push(event(0, piece, position === pieces.length - 1 ? 'length' : null)).chunks) joiner.add(chunk);
      const whole = readCompletion(200, event(0, pieces.join(''), 'length'), own);
      expect(joiner.finished()).toEqual(whole.kind === 'choices' ? whole.choices : undefined);
    }));
  });
});

describe('what an engine is asked', () => {
  test('keeps the bytes of the client, with the model and the prompt changed', () => {
    const { document, request } = documentOf('{"model":"public","prompt":["a","b"],"seed":9007199254740993,"top_k":1.0,"user":"u","suffix":null,"best_of":1,"n_predict":9,"echo":null}');
    const [, second] = promptsOf(request);
    expect(toEngineCompletion(document, request, { servedModel: 'inner', dialect: llama, stream: false, cacheSalt: 's', prompt: second ?? '' })).toBe('{"model":"inner","prompt":"b","seed":9007199254740993,"top_k":1.0,"stream":false,"max_tokens":16}');
    const vllm = toEngineCompletion(document, request, { servedModel: 'inner', dialect: dialectOf('vllm'), stream: true, cacheSalt: 's', prompt: second ?? '' });
    expect(JSON.parse(vllm)).toMatchObject({ stream: true, cache_salt: 's', stream_options: { include_usage: true } });
    expect(vllm).not.toMatch(/null|best_of|user/);
  });

  test('echoes are put before the text where the engine does not, and refused where only it could', () => {
    const { request } = documentOf('{"model":"m","prompt":"p","echo":true}');
    expect(echoOf(request, 'p', llama)).toEqual({ prefix: 'p' });
    expect(echoOf(request, 'p', dialectOf('vllm'))).toEqual({ prefix: '' });
    expect(echoOf(request, [1, 2], llama)).toMatchObject({ code: 'unsupported_parameter', param: 'echo' });
    expect(echoOf({ ...request, logprobs: 1 }, 'p', llama)).toMatchObject({ param: 'echo' });
  });
});

import { expect, test } from '@jest/globals';
import { embeddingRequest } from '@penstock/contract-http';
import { toEngineEmbedding } from './embedding-request.js';
import { dialectOf } from './engine-dialect.js';
import { readJson } from './read-json.js';

test.each([
  ['vllm', '{"model":"inner","input":[[7,1]],"own":1.0,"cache_salt":"ours","encoding_format":"float"}'],
  ['llama.cpp', '{"model":"inner","input":[[7,1]],"own":1.0,"encoding_format":"float"}'],
] as const)('what %s gets has the bytes of the input, and nothing that steers it or is read in its place', (kind, expected) => {
  const read = readJson('{"model":"public","input":[[7,1]],"own":1.0,"messages":[{"content":[{"image_url":{"url":"http://127.0.0.1/"}}]}],"content":"x","cache_salt":"theirs","kv_transfer_params":{},"chat_template":"x","mm_processor_kwargs":{},"priority":9,"endianness":"big","user":null,"dimensions":null}');
  if (read.kind === 'fault') throw new Error(read.fault.message);
  const body = toEngineEmbedding(read.document, embeddingRequest.parse(read.document.value), { servedModel: 'inner', dialect: dialectOf(kind), cacheSalt: 'ours', format: 'float' });
  const [sent, wanted] = [JSON.parse(body), JSON.parse(expected)] as unknown[];
  expect([sent, body.includes('"own":1.0')]).toEqual([wanted, true]);
});

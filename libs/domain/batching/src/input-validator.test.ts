import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CHUNK_LINES_MAX } from './chunk-plan.js';
import { parseInputLine } from './input-line.js';
import { BATCH_EMBEDDING_INPUTS_MAX, BATCH_REQUESTS_MAX, validateInput, type ValidatedInput } from './input-validator.js';
import { LINE_BYTES_MAX, splitLines, type Line } from './split-lines.js';

const URL = '/v1/chat/completions';
const encoder = new TextEncoder();
const row = (customId: string, more: Record<string, unknown> = {}, body: Record<string, unknown> = {}) =>
  JSON.stringify({ custom_id: customId, method: 'POST', url: URL, body: { model: 'm', messages: [], ...body }, ...more });

async function* blocksOf(bytes: Uint8Array, size = 1_000_000): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size);
}

const validate = (text: string | Uint8Array, blockSize?: number): Promise<ValidatedInput> => validateInput(blocksOf(typeof text === 'string' ? encoder.encode(text) : text, blockSize), URL);

async function faultsOf(text: string | Uint8Array): Promise<{ code: string; line: number | null; param: string | null }[]> {
  const result = await validate(text);
  return result.kind === 'valid' ? [] : result.faults.map(({ code, line, param }) => ({ code, line, param }));
}

async function planOf(text: string | Uint8Array) {
  const result = await validate(text);
  if (result.kind === 'invalid') throw new Error(result.faults[0]?.message);
  return result.plan;
}

describe('a valid input', () => {
  test('may have a byte order mark, CRLF, blank lines and no last line break', async () => {
    const text = `\uFEFF${row('a')}\r\n\r\n${row('b')}\n  \n${row('ü')}`;
    expect(await planOf(text)).toMatchObject({ total: 3, modelName: 'm', chunks: [{ chunk: 0, firstLine: 1, requests: 3, byteStart: 0, byteEnd: encoder.encode(text).length }] });
  });

  test('is cut into chunks of whole lines that cover every request', async () => {
    const plan = await planOf(Array.from({ length: CHUNK_LINES_MAX * 2 + 1 }, (_, index) => row(`r${index}`)).join('\n'));
    expect(plan.chunks.map((chunk) => [chunk.chunk, chunk.firstLine, chunk.requests])).toEqual([[0, 1, 50], [1, 51, 50], [2, 101, 1]]);
    expect(plan.total).toBe(101);
  });
});

describe('a batch of embeddings', () => {
  const line = (customId: string, input: unknown) => JSON.stringify({ custom_id: customId, method: 'POST', url: '/v1/embeddings', body: { model: 'm', input } });
  const check = (...lines: string[]) => validateInput(blocksOf(encoder.encode(lines.join('\n'))), '/v1/embeddings');

  test('has a limit on the inputs of all its lines', async () => {
    const most = Array.from({ length: BATCH_EMBEDDING_INPUTS_MAX / 1_000 }, (_, index) => line(`r${index}`, Array.from({ length: 1_000 }, () => 'x')));
    expect((await check(...most)).kind).toBe('valid');
    expect(await check(...most, line('more', [1, 2, 3]), line('after', 'x'))).toMatchObject({ kind: 'invalid', faults: [{ code: 'too_many_tasks', param: 'body.input', line: most.length + 1 }] });
  });
});

describe('a fault names its line', () => {
  test.each([
    ['not JSON', `${row('a')}\n{"custom_id":`, 'invalid_json_line', 2, null],
    ['not an object', `${row('a')}\n[1]`, 'invalid_request', 2, null],
    ['after blank lines and CRLF', `\r\n\r\n${row('a')}\r\nnope\r\n`, 'invalid_json_line', 4, null],
    ['a repeated custom_id', `${row('a')}\n${row('b')}\n${row('a')}`, 'duplicate_custom_id', 3, 'custom_id'],
    ['another url', `${row('a')}\n${row('b', { url: '/v1/embeddings' })}`, 'url_mismatch', 2, 'url'],
    ['another model', `${row('a')}\n${row('b', {}, { model: 'n' })}`, 'model_mismatch', 2, 'body.model'],
    ['another method', `${row('a', { method: 'GET' })}`, 'invalid_request', 1, 'method'],
    ['a stream', `${row('a', {}, { stream: true })}`, 'invalid_request', 1, 'body.stream'],
    ['no custom_id', `{"method":"POST","url":"${URL}","body":{"model":"m"}}`, 'invalid_request', 1, 'custom_id'],
    ['no body', `{"custom_id":"a","method":"POST","url":"${URL}"}`, 'invalid_request', 1, 'body'],
  ])('%s', async (_name, text, code, line, param) => {
    expect(await faultsOf(text)).toEqual([{ code, line, param }]);
  });

  test('bytes that are not UTF-8', async () => {
    const bytes = encoder.encode(`${row('a')}\n${row('bX')}`);
    bytes[bytes.lastIndexOf('X'.charCodeAt(0))] = 0xff;
    expect(await faultsOf(bytes)).toEqual([{ code: 'invalid_json_line', line: 2, param: null }]);
  });

  test('a line of ten megabytes', async () => {
    const long = row('b', {}, { pad: 'x'.repeat(10_000_000) });
    expect(await faultsOf(`${row('a')}\n${long}\n${row('c')}`)).toEqual([{ code: 'line_too_long', line: 2, param: null }]);
    expect(LINE_BYTES_MAX).toBeLessThan(10_000_000);
  });

  test('too many requests', async () => {
    const text = Array.from({ length: BATCH_REQUESTS_MAX + 2 }, (_, index) => `{"custom_id":"${index}","method":"POST","url":"${URL}","body":{"model":"m"}}`).join('\n');
    expect(await faultsOf(text)).toEqual([{ code: 'too_many_tasks', line: BATCH_REQUESTS_MAX + 1, param: null }]);
  });

  test.each([['nothing'], ['blank lines']])('%s at all', async (name) => {
    expect(await faultsOf(name === 'nothing' ? '' : '\n\r\n  \n')).toEqual([{ code: 'empty_file', line: null, param: null }]);
  });

  test('no message repeats what the customer wrote into a request', async () => {
    const result = await validate(`${row('a', {}, { messages: 'SECRET', model: 7 })}\n{"SECRET"\n${row('SECRET')}\n${row('SECRET')}`);
    expect(result.kind).toBe('invalid');
    expect(JSON.stringify(result)).not.toContain('SECRET');
  });
});

describe('splitting', () => {
  async function linesOf(bytes: Uint8Array, blockSize: number): Promise<Line[]> {
    const lines: Line[] = [];
    for await (const line of splitLines(blocksOf(bytes, blockSize))) lines.push(line);
    return lines;
  }

  test('gives the same lines however the bytes arrive, and ranges that cover the file', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.constantFrom('a', 'é', '\n', '\r\n', ' ', '{"x":1}'), { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (parts, blockSize) => {
      const text = parts.join('');
      const bytes = encoder.encode(text);
      const lines = await linesOf(bytes, blockSize);
      const expected = text.split('\n').map((line) => line.replace(/\r$/, ''));
      if (expected.at(-1) === '' && !text.endsWith('\r')) expected.pop();
      expect(lines.map((line) => new TextDecoder().decode(line.bytes ?? undefined))).toEqual(expected);
      expect(lines.map((line) => line.byteStart)).toEqual([0, ...lines.map((line) => line.byteEnd)].slice(0, lines.length));
      expect(lines.at(-1)?.byteEnd ?? 0).toBe(bytes.length);
    }));
  });
});

describe('the body of a request', () => {
  test('is kept as it was written, to the last digit', () => {
    const body = '{ "model":"m", "seed": 12345678901234567890, "t":1.0e+2,\n "s":"a\\"}{\\\\" , "n":[{"body":1}] }'.replace('\n', ' ');
    const parsed = parseInputLine(encoder.encode(`{"custom_id":"a" , "method":"POST","x":[{"body":{}}],"url":"${URL}","body":${body}, "z":null}`), 1, LINE_BYTES_MAX);
    expect(parsed).toMatchObject({ kind: 'line', line: { bodyText: body } });
  });

  test('is found in any JSON object', () => {
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), fc.nat({ max: 3 }), (others, value, indent) => {
      const text = JSON.stringify({ ...others, custom_id: 'a', method: 'POST', url: URL, body: { model: 'm', extra: value } }, null, indent);
      const parsed = parseInputLine(encoder.encode(text), 1, LINE_BYTES_MAX);
      expect(parsed.kind === 'line' ? JSON.parse(parsed.line.bodyText) : parsed).toEqual(JSON.parse(JSON.stringify({ model: 'm', extra: value })));
    }));
  });
});

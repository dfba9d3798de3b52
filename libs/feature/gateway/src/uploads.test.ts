import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { registerFile, type FileObject } from '@penstock/contract-commands';
import { openAiErrorBody, uploadObject, uploadPart, type UploadObject } from '@penstock/contract-http';
import fc from 'fast-check';
import OpenAI from 'openai';
import { startWorld, type World } from './gateway-world-suite.js';
import { UPLOAD_TTL_MS, UploadStore } from './uploads/upload-store.js';

let world: World;
let registered: { fileId: string; organisationId: string; objectKey: string; digest: string; bytes: number }[];

beforeEach(async () => {
  world = await startWorld();
  registered = [];
  world.commands.serve(registerFile, (request) => {
    registered.push(request);
    const file: FileObject = { id: request.fileId, object: 'file', bytes: request.bytes, created_at: 1, expires_at: null, filename: request.filename, purpose: 'batch', status: 'processed', status_details: null };
    return { kind: 'ok', value: file };
  });
});
afterEach(() => world.close());

const post = (path: string, body?: object, key = world.key) => world.fetch(path, { method: 'POST', key, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
const begin = async (bytes: number, more: object = {}): Promise<UploadObject> => uploadObject.parse(await (await post('/v1/uploads', { filename: 'in.jsonl', purpose: 'batch', bytes, mime_type: 'application/jsonl', ...more })).json());
const form = (data: Uint8Array | string, field = 'data'): FormData => {
  const made = new FormData();
  made.set(field, new Blob([typeof data === 'string' ? data : Buffer.from(data)]), 'part');
  return made;
};
const sendPart = (id: string, data: Uint8Array | string, key = world.key) => world.fetch(`/v1/uploads/${id}/parts`, { method: 'POST', key, body: form(data) });
const addPart = async (id: string, data: Uint8Array | string): Promise<string> => uploadPart.parse(await (await sendPart(id, data)).json()).id;
const fault = async (response: Response) => ({ status: response.status, ...openAiErrorBody.parse(await response.json()).error });
const objects = async (prefix: string) => (await world.objects.list(prefix)).objects.map(({ key }) => key);

describe('an upload in parts', () => {
  test('becomes one file of the parts in the order that completes it, however it was cut', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), { minLength: 1, maxLength: 5 }), fc.boolean(), async (pieces, isReversed) => {
      const whole = Buffer.concat(pieces);
      const { id } = await begin(whole.length);
      const indices = pieces.map((_, index) => index);
      const partIds = new Map<number, string>();
      // Parts may come in any order, and at once.
      await Promise.all((isReversed ? indices.toReversed() : indices).map(async (index) => partIds.set(index, await addPart(id, pieces[index] ?? ''))));
      const body = { part_ids: indices.map((index) => partIds.get(index)), md5: createHash('md5').update(whole).digest('hex') };
      const done = uploadObject.parse(await (await post(`/v1/uploads/${id}/complete`, body)).json());
      expect(done).toMatchObject({ id, status: 'completed', bytes: whole.length, file: { bytes: whole.length, filename: 'in.jsonl', purpose: 'batch' } });
      const { objectKey, digest } = registered.at(-1) ?? { objectKey: '', digest: '' };
      expect(digest).toBe(`sha256:${createHash('sha256').update(whole).digest('hex')}`);
      const stored: Uint8Array[] = [];
      for await (const piece of (await world.objects.get(objectKey))?.body ?? []) stored.push(piece);
      expect(Buffer.concat(stored)).toEqual(whole);
      expect(await objects(`upload-parts/org_root/${id}/`)).toEqual([]);
    }), { numRuns: 12 });
  });

  test('works with the official client as it is', async () => {
    const client = new OpenAI({ baseURL: `${world.url}/v1`, apiKey: world.key, maxRetries: 0 });
    const upload = await client.uploads.create({ filename: 'a.jsonl', purpose: 'batch', bytes: 4, mime_type: 'application/jsonl' });
    const parts = [await client.uploads.parts.create(upload.id, { data: new File(['ab'], 'p') }), await client.uploads.parts.create(upload.id, { data: new File(['cd'], 'p') })];
    expect(parts[0]).toMatchObject({ object: 'upload.part', upload_id: upload.id });
    const done = await client.uploads.complete(upload.id, { part_ids: parts.map((part) => part.id) });
    expect([done.status, done.file?.bytes]).toEqual(['completed', 4]);
    const other = await client.uploads.create({ filename: 'b.jsonl', purpose: 'batch', bytes: 4, mime_type: 'application/jsonl' });
    expect((await client.uploads.cancel(other.id)).status).toBe('cancelled');
  });

  test('completed twice is the same file; completed otherwise, or added to, it is a mistake', async () => {
    const { id } = await begin(4);
    const [one, two] = [await addPart(id, 'ab'), await addPart(id, 'cd')];
    const [first, second] = [await post(`/v1/uploads/${id}/complete`, { part_ids: [one, two] }), await post(`/v1/uploads/${id}/complete`, { part_ids: [one, two] })];
    expect(await second.json()).toEqual(await first.json());
    expect(new Set(registered.map(({ fileId, digest }) => `${fileId} ${digest}`)).size).toBe(1);
    expect(await fault(await post(`/v1/uploads/${id}/complete`, { part_ids: [two, one] }))).toMatchObject({ status: 400, message: expect.stringContaining('completed') });
    expect(await fault(await sendPart(id, 'ef'))).toMatchObject({ status: 400 });
    expect(await fault(await post(`/v1/uploads/${id}/cancel`))).toMatchObject({ status: 400 });
  });

  test('of many that complete it at once in two orders, one order wins, and no other bytes stay', async () => {
    const { id } = await begin(4);
    const [one, two] = [await addPart(id, 'ab'), await addPart(id, 'cd')];
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => post(`/v1/uploads/${id}/complete`, { part_ids: index % 2 === 0 ? [one, two] : [two, one] })));
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    expect(new Set(registered.map(({ digest, objectKey }) => `${digest} ${objectKey}`)).size).toBe(1);
    expect(await objects('files/')).toEqual([registered[0]?.objectKey]);
  });

  test('that was cancelled leaves nothing behind and takes no more', async () => {
    const { id } = await begin(4);
    const part = await addPart(id, 'ab');
    expect(uploadObject.parse(await (await post(`/v1/uploads/${id}/cancel`)).json())).toMatchObject({ status: 'cancelled', file: null });
    expect(uploadObject.parse(await (await post(`/v1/uploads/${id}/cancel`)).json())).toMatchObject({ status: 'cancelled' });
    expect(await objects('upload-parts/')).toEqual([]);
    expect(await fault(await sendPart(id, 'cd'))).toMatchObject({ status: 400, message: expect.stringContaining('cancelled') });
    expect(await fault(await post(`/v1/uploads/${id}/complete`, { part_ids: [part] }))).toMatchObject({ status: 400 });
    expect(registered).toEqual([]);
  });

  test.each<[string, (parts: readonly [string, string]) => object, string, string]>([
    ['too few bytes', ([one]) => ({ part_ids: [one] }), 'part_ids', '2 bytes together'],
    ['a part twice', ([one]) => ({ part_ids: [one, one] }), 'part_ids[1]', 'named twice'],
    ['an unknown part', ([one]) => ({ part_ids: [one, 'part_x'] }), 'part_ids[1]', 'no part of this upload'],
    ['another MD5', ([one, two]) => ({ part_ids: [one, two], md5: 'f'.repeat(32) }), 'md5', 'MD5'],
    ['no parts', () => ({ part_ids: [] }), 'part_ids', 'part_ids'],
  ])('with %s is not complete, and may still become so', async (_name, body, param, words) => {
    const { id } = await begin(4);
    const parts = [await addPart(id, 'ab'), await addPart(id, 'cd')] as const;
    expect(await fault(await post(`/v1/uploads/${id}/complete`, body(parts)))).toMatchObject({ status: 400, param, message: expect.stringContaining(words) });
    expect(await objects('files/')).toEqual([]);
    expect((await post(`/v1/uploads/${id}/complete`, { part_ids: parts })).status).toBe(200);
  });

  test.each<[string, object, string]>([
    ['more than may be', { bytes: 9 * 1_024 ** 3 }, 'bytes'], ['nothing', { bytes: 0 }, 'bytes'], ['another purpose', { purpose: 'vision' }, 'purpose'], ['another kind of file', { filename: 'a.txt' }, 'file'], ['a life that is too short', { expires_after: { anchor: 'created_at', seconds: 1 } }, 'expires_after.seconds'],
  ])('of %s is not begun', async (_name, more, param) => {
    expect(await fault(await post('/v1/uploads', { filename: 'in.jsonl', purpose: 'batch', bytes: 4, mime_type: 'x/y', ...more }))).toMatchObject({ status: 400, param });
    expect(await objects('upload-heads/')).toEqual([]);
  });

  test('takes at most twice what it was begun for, part by part', async () => {
    const { id } = await begin(4);
    await addPart(id, 'abcd');
    await addPart(id, 'abcd');
    expect(await fault(await sendPart(id, 'a'))).toMatchObject({ status: 413, code: 'body_too_large', param: 'data' });
    expect(await objects(`upload-parts/org_root/${id}/`)).toHaveLength(2);
    const wrong = await world.fetch(`/v1/uploads/${id}/parts`, { method: 'POST', key: world.key, body: form('x', 'file') });
    expect(await fault(wrong)).toMatchObject({ status: 400, param: 'data' });
  });

  test('is nobody else\'s: the same words as for one that is not there', async () => {
    const { id } = await begin(4);
    const { id: organisationId } = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Two' }) })).json() as { id: string };
    const { key } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'two', project_id: `proj_${organisationId.slice(4)}` }) })).json() as { key: string };
    const unknown = id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    for (const [path, body] of [['cancel', undefined], ['complete', { part_ids: ['part_x'] }]] as const) {
      const [foreign, missing] = [await fault(await post(`/v1/uploads/${id}/${path}`, body, key)), await fault(await post(`/v1/uploads/${unknown}/${path}`, body, key))];
      expect(foreign).toEqual({ ...missing, message: missing.message.replace(unknown, id) });
      expect(foreign).toMatchObject({ status: 404, code: 'upload_not_found' });
    }
    expect((await sendPart(id, 'ab', key)).status).toBe(404);
    expect((await sendPart('..%2F..', 'ab')).status).toBe(404);
  });
});

test('an upload that was forgotten is expired, and later swept with its parts', async () => {
  // The store in memory counts its writes in place of a time.
  let nowMs = 0;
  const store = new UploadStore({ objects: world.objects, clock: { now: () => nowMs } });
  const { id } = await begin(4);
  await addPart(id, 'ab');
  await store.sweep();
  expect([await store.countOf('org_root'), await objects('upload-parts/')]).toEqual([1, [expect.stringContaining(id)]]);
  nowMs += 3 * UPLOAD_TTL_MS;
  await store.sweep();
  expect([...(await objects('upload-parts/')), ...(await objects('upload-heads/'))]).toEqual([]);
  expect(await store.head('org_root', id)).toBeUndefined();
});

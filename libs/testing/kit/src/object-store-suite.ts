import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ByteRange, ObjectInfo, ObjectStore } from '@penstock/domain-batching';

export interface ObjectStoreSubject {
  readonly store: ObjectStore;
  close(): Promise<void>;
}

const PAGES_MAX = 100;
const MEGABYTE = 1_048_576;
const text = (content: string): Uint8Array => new TextEncoder().encode(content);

async function readText(store: ObjectStore, key: string, range?: ByteRange): Promise<string | undefined> {
  const reading = await store.get(key, range);
  if (reading === undefined) return undefined;
  const decoder = new TextDecoder();
  let whole = '';
  for await (const chunk of reading.body) whole += decoder.decode(chunk, { stream: true });
  return whole + decoder.decode();
}

async function listAll(store: ObjectStore, prefix: string, limit?: number): Promise<{ readonly objects: readonly ObjectInfo[]; readonly pages: number }> {
  const objects: ObjectInfo[] = [];
  let cursor: string | undefined;
  for (let pages = 1; pages <= PAGES_MAX; pages += 1) {
    const page = await store.list(prefix, { cursor, limit });
    objects.push(...page.objects);
    if (page.next === undefined) return { objects, pages };
    cursor = page.next;
  }
  throw new Error(`the listing of ${prefix} does not end`);
}

/** Megabytes of pattern, chunk by chunk; `failAfter` breaks off in the middle. */
async function* pattern(megabytes: number, failAfter = Infinity): AsyncIterable<Uint8Array> {
  for (let index = 0; index < megabytes; index += 1) {
    if (index >= failAfter) throw new Error('the source broke off');
    yield new Uint8Array(MEGABYTE).fill(index + 1);
  }
}

/** What every object store must do, on fakes and on real ones alike. */
export function objectStoreSuite(name: string, open: () => Promise<ObjectStoreSubject>): void {
  describe(`${name} as an object store`, () => {
    let subject: ObjectStoreSubject;
    let store: ObjectStore;
    beforeAll(async () => {
      subject = await open();
      store = subject.store;
    });
    afterAll(() => subject.close());

    test('gives back what was put, whole and in ranges', async () => {
      expect(await store.put('range/a.txt', text('0123456789'))).toEqual({ kind: 'stored', bytes: 10 });
      expect(await readText(store, 'range/a.txt')).toBe('0123456789');
      expect(await readText(store, 'range/a.txt', { offset: 3, length: 4 })).toBe('3456');
      expect(await readText(store, 'range/a.txt', { offset: 8 })).toBe('89');
      expect(await readText(store, 'range/a.txt', { offset: 8, length: 100 })).toBe('89');
      expect(await readText(store, 'range/a.txt', { offset: 10 })).toBe('');
      expect(await readText(store, 'range/a.txt', { offset: 2, length: 0 })).toBe('');
      expect(await store.head('range/a.txt')).toMatchObject({ key: 'range/a.txt', bytes: 10 });
      const part = await store.get('range/a.txt', { offset: 1, length: 1 });
      expect(part?.bytes).toBe(10);
      for await (const chunk of part?.body ?? []) expect([...chunk]).toEqual([...text('1')]);
    });

    test('knows an empty object from none', async () => {
      await store.put('empty/one', new Uint8Array(0));
      expect(await readText(store, 'empty/one')).toBe('');
      expect(await store.head('empty/one')).toMatchObject({ bytes: 0 });
      expect([await store.get('empty/none'), await store.head('empty/none')]).toEqual([undefined, undefined]);
    });

    test('replaces an object, and deletes it once or twice', async () => {
      await store.put('replace/a', text('old'));
      await store.put('replace/a', text('newer'));
      expect(await readText(store, 'replace/a')).toBe('newer');
      await store.delete('replace/a');
      await store.delete('replace/a');
      expect(await store.head('replace/a')).toBeUndefined();
    });

    test('streams an object of many parts both ways', async () => {
      const wanted = createHash('sha256');
      for await (const chunk of pattern(20)) wanted.update(chunk);
      expect(await store.put('stream/big', pattern(20))).toEqual({ kind: 'stored', bytes: 20 * MEGABYTE });
      const found = createHash('sha256');
      for await (const chunk of (await store.get('stream/big'))?.body ?? []) found.update(chunk);
      expect(found.digest('hex')).toBe(wanted.digest('hex'));
    });

    test('stores nothing of a stream that breaks off', async () => {
      await expect(store.put('broken/small', pattern(2, 1))).rejects.toThrow('the source broke off');
      await expect(store.put('broken/big', pattern(20, 18))).rejects.toThrow('the source broke off');
      expect((await store.list('broken/')).objects).toEqual([]);
    });

    test('puts if absent: one of many wins, and the winner stays', async () => {
      const results = await Promise.all(Array.from({ length: 6 }, async (_, index) => ({ index, ...(await store.put('absent/race', text(`writer ${index}`), { ifAbsent: true })) })));
      const winners = results.filter((result) => result.kind === 'stored');
      expect(winners).toHaveLength(1);
      expect(await readText(store, 'absent/race')).toBe(`writer ${winners[0]?.index ?? -1}`);
      expect(await store.put('absent/race', pattern(1), { ifAbsent: true })).toEqual({ kind: 'exists' });
      expect(await store.put('absent/race', pattern(12), { ifAbsent: true })).toEqual({ kind: 'exists' });
      expect(await readText(store, 'absent/race')).toBe(`writer ${winners[0]?.index ?? -1}`);
    });

    test('lists by prefix, each key once, in pages', async () => {
      const keys = ['list/a', 'list/a-1', 'list/a/1', 'list/a/2/x', 'list/b', 'lists/no'];
      for (const key of keys) await store.put(key, text(key));
      const inList = keys.filter((key) => key.startsWith('list/'));
      const paged = await listAll(store, 'list/', 2);
      expect(paged.pages).toBeGreaterThanOrEqual(3);
      expect(paged.objects.map((object) => object.key).sort()).toEqual(inList);
      expect(paged.objects.every((object) => object.bytes === object.key.length && object.modifiedMs > 0)).toBe(true);
      expect((await listAll(store, 'list/a')).objects.map((object) => object.key).sort()).toEqual(['list/a', 'list/a-1', 'list/a/1', 'list/a/2/x']);
      expect(await store.list('list/none')).toEqual({ objects: [], next: undefined });
    });

    test('a key may be the beginning of another one', async () => {
      await store.put('nested/dir/x', text('inside'));
      await store.put('nested/dir', text('beside'));
      expect([await readText(store, 'nested/dir'), await readText(store, 'nested/dir/x')]).toEqual(['beside', 'inside']);
      await store.delete('nested/dir/x');
      expect(await readText(store, 'nested/dir')).toBe('beside');
    });

    test.each(['', '/', '/etc/passwd', '../outside', 'a/../../b', 'a//b', 'a/./b', 'a/', 'a\0b', 'a\\b', 'a b', 'a\nb', 'ä', `${'x'.repeat(201)}`, `${'x/'.repeat(500)}x`])('refuses the key %j everywhere', async (key) => {
      const refused = { name: 'ObjectRefusedError' };
      await expect(store.put(key, text('x'))).rejects.toMatchObject(refused);
      await expect(store.get(key)).rejects.toMatchObject(refused);
      await expect(store.head(key)).rejects.toMatchObject(refused);
      await expect(store.delete(key)).rejects.toMatchObject(refused);
    });

    test('a reader may leave early', async () => {
      await store.put('early/big', pattern(12));
      const reading = await store.get('early/big');
      let seen = 0;
      for await (const chunk of reading?.body ?? []) {
        seen += chunk.length;
        break;
      }
      expect(seen).toBeGreaterThan(0);
      expect(await readText(store, 'early/big', { offset: 0, length: 2 })).toBe('\u0001\u0001');
    });
  });
}

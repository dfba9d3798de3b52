import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { objectStoreSuite } from '@penstock/testing-kit/suites';
import { FilesystemObjectStore } from './filesystem-object-store.js';

const makeRoot = (): Promise<string> => mkdtemp(join(tmpdir(), 'penstock-objects-'));

objectStoreSuite('FilesystemObjectStore', async () => {
  const root = await makeRoot();
  return { store: await FilesystemObjectStore.open(root), close: () => rm(root, { recursive: true, force: true }) };
});

describe('FilesystemObjectStore', () => {
  test('keeps objects over a restart, drops half-written ones, and lets only the owner read', async () => {
    const root = await makeRoot();
    const first = await FilesystemObjectStore.open(root);
    await first.put('a/b', new TextEncoder().encode('kept'));
    await writeFile(join(root, 'staging', 'left-over'), 'half');
    const second = await FilesystemObjectStore.open(root);
    expect(await second.head('a/b')).toMatchObject({ bytes: 4 });
    expect(await readdir(join(root, 'staging'))).toEqual([]);
    expect((await stat(join(root, 'objects', 'a', 'b~'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(root, 'objects', 'a'))).mode & 0o777).toBe(0o700);
    await second.delete('a/b');
    expect(await readdir(join(root, 'objects'))).toEqual([]);
    await rm(root, { recursive: true });
  });

  test('puts and deletes in one folder at the same time lose nothing', async () => {
    const root = await makeRoot();
    const store = await FilesystemObjectStore.open(root);
    const work = Array.from({ length: 60 }, async (_, index) => {
      await store.put(`same/${index}`, new Uint8Array([index]));
      if (index % 2 === 0) await store.delete(`same/${index}`);
    });
    await Promise.all(work);
    expect((await store.list('same/')).objects).toHaveLength(30);
    await rm(root, { recursive: true });
  });

  test('says that the folder cannot be used', async () => {
    const root = await makeRoot();
    await writeFile(join(root, 'file'), '');
    await expect(FilesystemObjectStore.open(join(root, 'file'))).rejects.toThrow(/The object store is not available: /);
    await rm(root, { recursive: true });
  });
});

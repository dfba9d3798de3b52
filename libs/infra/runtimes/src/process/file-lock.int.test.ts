import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { tryLock, waitForLock, type LockHolder } from './file-lock.js';
import { identityOf } from './process-identity.js';

describe('the lock file', () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-lock-'));
    path = join(folder, 'lock');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('is held by one at a time and leaves nothing behind', async () => {
    const first = await tryLock(path, 'the first');
    if (first.kind !== 'held') throw new Error('the first attempt holds the lock');
    expect(await tryLock(path, 'the second')).toMatchObject({ kind: 'busy', holder: { pid: process.pid, note: 'the first' } });
    await first.lock.setNote('http://127.0.0.1:1');
    expect(await tryLock(path, '')).toMatchObject({ kind: 'busy', holder: { note: 'http://127.0.0.1:1' } });
    await first.lock.release();
    expect(await readdir(folder)).toEqual([]);
  });

  test('is taken over, by exactly one of many, when its holder is gone or its number belongs to another process', async () => {
    const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' });
    await once(child, 'exit');
    const dead: LockHolder = { pid: child.pid ?? 1, identity: 'gone', token: 'token', since: new Date(0).toISOString(), note: '' };
    for (const holder of [dead, { ...dead, pid: process.pid }]) {
      await writeFile(path, JSON.stringify(holder));
      const attempts = await Promise.all(Array.from({ length: 8 }, () => tryLock(path, '')));
      const held = attempts.filter((attempt) => attempt.kind === 'held');
      expect(held).toHaveLength(1);
      await held[0]?.lock.release();
    }
  });

  test('waits for its turn, and gives up with the holder named', async () => {
    const first = await tryLock(path, 'installing');
    if (first.kind !== 'held') throw new Error('the first attempt holds the lock');
    const waits: LockHolder[] = [];
    await expect(waitForLock(path, '', 0, (holder) => waits.push(holder))).rejects.toThrow(new RegExp(`Process ${process.pid} has held .*installing`));
    const second = waitForLock(path, '', 10_000, (holder) => waits.push(holder));
    await first.lock.release();
    await (await second).release();
    expect(waits.length).toBeGreaterThanOrEqual(1);
  });

  test('a process has one identity, and none once it is gone', async () => {
    expect(await identityOf(process.pid)).toBe(await identityOf(process.pid));
    const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' });
    await once(child, 'exit');
    expect(await identityOf(child.pid ?? 0)).toBeUndefined();
  });
});

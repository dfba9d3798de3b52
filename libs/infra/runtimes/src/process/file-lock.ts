import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { identityOf, isSameProcess } from './process-identity.js';

const POLL_MS = 200;
/** Taking over a stale lock takes a moment; a takeover mark older than this was left by a crash. */
const TAKEOVER_STALE_MS = 10_000;
const ATTEMPTS_MAX = 100;

export const lockHolder = z.object({
  pid: z.int().positive(),
  identity: z.string(),
  token: z.string(),
  /** When the lock was taken, ISO 8601. */
  since: z.string(),
  /** Free text for the person who meets the lock, such as a URL. */
  note: z.string(),
});
export type LockHolder = z.infer<typeof lockHolder>;

export interface FileLock {
  /** Rewrites the note that others see. */
  setNote(note: string): Promise<void>;
  release(): Promise<void>;
}

export type LockAttempt = { readonly kind: 'held'; readonly lock: FileLock } | { readonly kind: 'busy'; readonly holder: LockHolder };

/** Tries to take the lock at `path` once. A lock whose process is gone is taken over. */
export async function tryLock(path: string, note: string): Promise<LockAttempt> {
  const mine: LockHolder = {
    pid: process.pid, identity: (await identityOf(process.pid)) ?? '', token: randomUUID(), since: new Date().toISOString(), note,
  };
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    if (await createExclusively(path, mine)) return { kind: 'held', lock: new HeldLock(path, mine) };
    const holder = await readHolder(path);
    if (holder !== undefined && (await isSameProcess(holder.pid, holder.identity))) return { kind: 'busy', holder };
    if (await takeOver(path, mine)) return { kind: 'held', lock: new HeldLock(path, mine) };
    await delay(POLL_MS / 10);
  }
  throw new Error(`The lock ${path} keeps changing hands; remove the file if no other Penstock runs.`);
}

/** Waits for the lock at `path` up to `timeoutMs`; calls `onWait` once when somebody else holds it. */
export async function waitForLock(path: string, note: string, timeoutMs: number, onWait: (holder: LockHolder) => void): Promise<FileLock> {
  let told = false;
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const attempt = await tryLock(path, note);
    if (attempt.kind === 'held') return attempt.lock;
    if (!told) onWait(attempt.holder);
    told = true;
    if (waitedMs >= timeoutMs) {
      throw new Error(`Process ${attempt.holder.pid} has held ${path} since ${attempt.holder.since} (${attempt.holder.note}); wait for it or end it, then retry.`);
    }
    await delay(POLL_MS);
  }
}

class HeldLock implements FileLock {
  constructor(private readonly path: string, private holder: LockHolder) {}

  async setNote(note: string): Promise<void> {
    this.holder = { ...this.holder, note };
    const fresh = `${this.path}.${this.holder.token}`;
    await writeFile(fresh, JSON.stringify(this.holder));
    await rename(fresh, this.path);
  }

  async release(): Promise<void> {
    const current = await readHolder(this.path);
    if (current?.token === this.holder.token) await rm(this.path, { force: true });
  }
}

/** A hard link either appears whole or not at all, so nobody reads a half-written lock. */
async function createExclusively(path: string, holder: LockHolder): Promise<boolean> {
  const fresh = `${path}.${holder.token}`;
  await writeFile(fresh, JSON.stringify(holder));
  try {
    await link(fresh, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(fresh, { force: true });
  }
}

async function readHolder(path: string): Promise<LockHolder | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return lockHolder.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Replaces a dead holder under a second mark, so that two waiters cannot both replace it. */
async function takeOver(path: string, mine: LockHolder): Promise<boolean> {
  const mark = `${path}.takeover`;
  if (!(await createExclusively(mark, mine))) {
    const ageMs = Date.now() - ((await stat(mark).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (ageMs > TAKEOVER_STALE_MS) await rm(mark, { force: true });
    return false;
  }
  try {
    const holder = await readHolder(path);
    if (holder !== undefined && (await isSameProcess(holder.pid, holder.identity))) return false;
    const fresh = `${path}.${mine.token}`;
    await writeFile(fresh, JSON.stringify(mine));
    await rename(fresh, path);
    return true;
  } finally {
    await rm(mark, { force: true });
  }
}

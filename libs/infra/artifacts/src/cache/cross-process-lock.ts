import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 200;
const HEARTBEAT_MS = 5_000;
/** A holder that shows no sign of life for this long is dead, even if its number was given to another process. */
const STALE_MS = 30_000;

export interface CrossProcessLock {
  release(): Promise<void>;
}

/**
 * Waits until this process is the only one that holds `path`. `onWait` is called at each look while another process has it.
 * A dead holder is replaced. Rejects with the signal's reason when it fires.
 */
export async function lockAcrossProcesses(path: string, signal: AbortSignal, onWait: () => Promise<void>): Promise<CrossProcessLock> {
  const token = `${process.pid}:${randomUUID()}`;
  for (;;) {
    signal.throwIfAborted();
    if (await createExclusively(path, token)) return hold(path, token);
    if ((await isAbandoned(path)) && (await replace(path, token))) return hold(path, token);
    await onWait();
    await delay(POLL_MS, undefined, { signal });
  }
}

function hold(path: string, token: string): CrossProcessLock {
  const beat = setInterval(() => {
    const now = new Date();
    void utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT_MS);
  beat.unref();
  return {
    release: async () => {
      clearInterval(beat);
      if ((await readFile(path, 'utf8').catch(() => '')) === token) await rm(path, { force: true });
    },
  };
}

/** A hard link appears whole or not at all, so nobody reads a half-written lock. */
async function createExclusively(path: string, token: string): Promise<boolean> {
  const fresh = `${path}.${randomUUID()}`;
  await writeFile(fresh, token);
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

async function isAbandoned(path: string): Promise<boolean> {
  const [token, found] = await Promise.all([readFile(path, 'utf8').catch(() => undefined), stat(path).catch(() => undefined)]);
  if (token === undefined || found === undefined) return false;
  return !isAlive(Number(token.split(':')[0])) || Date.now() - found.mtimeMs > STALE_MS;
}

/** Replaces a dead holder under a second mark, so that two waiters cannot both replace it. */
async function replace(path: string, token: string): Promise<boolean> {
  const mark = `${path}.takeover`;
  if (!(await createExclusively(mark, token))) {
    const ageMs = Date.now() - ((await stat(mark).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (ageMs > STALE_MS) await rm(mark, { force: true });
    return false;
  }
  try {
    if (!(await isAbandoned(path))) return false;
    const fresh = `${path}.${randomUUID()}`;
    await writeFile(fresh, token);
    await rename(fresh, path);
    return true;
  } finally {
    await rm(mark, { force: true });
  }
}

/** True when a process with this number exists. */
export function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

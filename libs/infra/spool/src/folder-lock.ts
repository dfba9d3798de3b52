import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Another process works in the folder. */
export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError';
  constructor(readonly folder: string, readonly pid: number) {
    super(`Process ${pid} already uses ${folder}. Stop it, or give this process a folder of its own.`);
  }
}

interface Holder {
  readonly pid: number;
  /** Start time of the process in clock ticks, so that another process with the same number is not taken for it; null where the system does not say. */
  readonly startTicks: string | null;
}

const TAKE_OVERS_MAX = 3;

/** Claims a folder for this process until the returned function is called; takes over from a process that died. */
export function lockFolder(folder: string): () => void {
  const path = join(folder, 'lock');
  const self: Holder = { pid: process.pid, startTicks: startTicksOf(process.pid) };
  for (let attempt = 0; attempt < TAKE_OVERS_MAX; attempt += 1) {
    try {
      writeFileSync(path, JSON.stringify(self), { flag: 'wx' });
      return () => {
        if (readHolder(path)?.pid === process.pid) rmSync(path, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readHolder(path);
    if (holder !== undefined && isAlive(holder)) throw new FolderLockedError(folder, holder.pid);
    rmSync(path, { force: true });
  }
  throw new FolderLockedError(folder, readHolder(path)?.pid ?? 0);
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return holder.startTicks === null || holder.startTicks === startTicksOf(holder.pid);
}

/** Field 22 of `/proc/<pid>/stat`; the name before it may hold spaces and parentheses. */
function startTicksOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

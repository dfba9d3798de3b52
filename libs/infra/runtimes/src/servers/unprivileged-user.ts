import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Where files of unprivileged servers go when the chosen folder cannot be reached by another user. */
const SYSTEM_STATE_DIR = '/var/lib/penstock';
const OTHERS_EXECUTE = 0o001;
const NOBODY_ID = 65_534;

export interface UnprivilegedUser {
  readonly uid: number;
  readonly gid: number;
}

/** The user that servers run as which refuse root; undefined when this process is not root. */
export async function unprivilegedUser(): Promise<UnprivilegedUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'));
  for (const name of ['postgres', 'nobody']) {
    const account = accounts.find((fields) => fields[0] === name);
    if (account !== undefined) return { uid: Number(account[2]), gid: Number(account[3]) };
  }
  return { uid: NOBODY_ID, gid: NOBODY_ID };
}

/** True when any user can walk down to `path`. */
export async function isReachableByOthers(path: string): Promise<boolean> {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    const status = await stat(folder).catch(() => undefined);
    if (status !== undefined && (status.mode & OTHERS_EXECUTE) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** A folder of the system that stands in for `path`, always the same for the same path. */
export function reachableStandIn(path: string): string {
  return join(SYSTEM_STATE_DIR, createHash('sha256').update(resolve(path)).digest('hex').slice(0, 16));
}

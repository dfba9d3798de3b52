import { chmod, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { defaultCacheDir } from '../cache-dir.js';
import { tryLock, type FileLock } from '../process/file-lock.js';
import { loadSecrets, type InstanceSecrets } from './instance-secrets.js';
import { InstanceState, type ChildRecord } from './instance-state.js';
import { reapChildren } from './reap-children.js';

const DEFAULT_DATA_DIR = '.penstock';
/** Root's PostgreSQL runs as another user and must be able to walk through; nobody may list. */
const MODE_ROOT = 0o711;
const MODE_USER = 0o700;

export interface OpenInstanceOptions {
  /** Default: `PENSTOCK_HOME`, else `.penstock` in the current folder. */
  readonly dataDir?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** Somebody else uses the data folder. */
export class InstanceBusyError extends Error {
  override readonly name = 'InstanceBusyError';
  constructor(readonly dataDir: string, readonly pid: number, readonly since: string, readonly note: string) {
    super(
      `Process ${pid} has used ${dataDir} since ${since}${note === '' ? '' : ` (${note})`}. ` +
      'Use that one, stop it first, or choose another folder: PENSTOCK_HOME=/another/folder.',
    );
  }
}

/** One installation's data: secrets, ports, logs and the servers' files. Held by one process at a time. */
export class Instance {
  private constructor(
    readonly dataDir: string,
    readonly cacheDir: string,
    readonly env: NodeJS.ProcessEnv,
    readonly secrets: InstanceSecrets,
    readonly state: InstanceState,
    /** Processes that an earlier run had left and that were ended now. */
    readonly reaped: readonly ChildRecord[],
    private readonly lock: FileLock,
  ) {}

  static async open(options: OpenInstanceOptions = {}): Promise<Instance> {
    const env = options.env ?? process.env;
    const dataDir = resolve(options.dataDir ?? (env['PENSTOCK_HOME'] || DEFAULT_DATA_DIR));
    const isNew = (await mkdir(dataDir, { recursive: true, mode: 0o755 })) !== undefined;
    if (isNew) await chmod(dataDir, process.getuid?.() === 0 ? MODE_ROOT : MODE_USER);
    const attempt = await tryLock(join(dataDir, 'lock'), '');
    if (attempt.kind === 'busy') throw new InstanceBusyError(dataDir, attempt.holder.pid, attempt.holder.since, attempt.holder.note);
    try {
      const state = await InstanceState.load(dataDir);
      const reaped = await reapChildren(state);
      return new Instance(dataDir, defaultCacheDir(env), env, await loadSecrets(dataDir), state, reaped, attempt.lock);
    } catch (error) {
      await attempt.lock.release();
      throw error;
    }
  }

  /** A path inside the data folder. */
  path(...parts: readonly string[]): string {
    return join(this.dataDir, ...parts);
  }

  /** Tells a second process where this one can be reached. */
  async announce(url: string): Promise<void> {
    await this.lock.setNote(url);
  }

  /** Gives the data folder free. The caller has stopped everything that uses it. */
  async close(): Promise<void> {
    await this.lock.release();
  }
}

/** Opens the data folder, ends what a crashed run left behind, and makes secrets at first use. Throws {@link InstanceBusyError}. */
export function openInstance(options: OpenInstanceOptions = {}): Promise<Instance> {
  return Instance.open(options);
}

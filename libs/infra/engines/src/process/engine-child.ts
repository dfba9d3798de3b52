import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EngineStartError, type EngineExit, type EngineProcess, type EngineRecord } from '@penstock/domain-serving';
import type { EngineKind } from '@penstock/contract-events';
import { engineEnvironment } from './engine-environment.js';
import { logTail } from './log-tail.js';
import { identityOf } from './process-identity.js';

/** How often the end of a process that is not our child is looked for. */
const EXIT_POLL_MS = 250;
/** A process that was killed is gone within this time, unless the kernel holds it. */
const KILL_WAIT_MS = 10_000;
const LOG_MODE = 0o600;

export interface SpawnEngineOptions {
  readonly kind: EngineKind;
  readonly replicaId: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly url: string;
  readonly servedModel: string;
  readonly device: string | null;
  readonly logFile: string;
}

/** An engine that runs as a process of this node. It outlives the agent unless it is stopped. */
export class EngineChild implements EngineProcess {
  readonly exited: Promise<EngineExit>;
  private isGone = false;

  private constructor(readonly record: EngineRecord, private readonly processId: number, ended: Promise<string>) {
    this.exited = ended.then(async (what) => {
      this.isGone = true;
      const tail = await logTail(record.logFile);
      return { reason: tail === '' ? what : `${what}; it last printed: ${tail}` };
    });
  }

  get url(): string {
    return this.record.url;
  }

  get pid(): number {
    return this.processId;
  }

  get servedModel(): string {
    return this.record.servedModel;
  }

  get hasExited(): boolean {
    return this.isGone;
  }

  /** Starts the process in a group of its own, so that a signal to the agent's terminal does not reach it. Throws {@link EngineStartError}. */
  static async spawn(options: SpawnEngineOptions): Promise<EngineChild> {
    mkdirSync(dirname(options.logFile), { recursive: true });
    const log = openSync(options.logFile, 'a', LOG_MODE);
    const child = spawn(options.command, options.args, { detached: true, stdio: ['ignore', log, log], env: engineEnvironment(options.device) });
    closeSync(log);
    const { promise, resolve } = Promise.withResolvers<string>();
    child.once('exit', (code, signal) => resolve(signal === null ? `the engine exited with code ${code ?? '?'}` : `the engine was ended by ${signal}`));
    await spawned(child, options.command);
    child.unref();
    const pid = child.pid as number;
    const processIdentity = (await identityOf(pid)) ?? null;
    const { kind, replicaId, url, servedModel, logFile } = options;
    return new EngineChild({ kind, replicaId, url, servedModel, logFile, pid, processIdentity }, pid, promise);
  }

  /** The engine of an earlier agent; undefined when that process is gone. */
  static async adopt(record: EngineRecord): Promise<EngineChild | undefined> {
    const { pid, processIdentity } = record;
    if (pid === null || processIdentity === null || (await identityOf(pid)) !== processIdentity) return undefined;
    return new EngineChild(record, pid, untilGone(pid, processIdentity));
  }

  async stop(graceMs: number): Promise<void> {
    if (this.isGone) return;
    await this.signal('SIGTERM');
    if (!(await this.goneWithin(graceMs))) await this.kill();
  }

  async kill(): Promise<void> {
    if (this.isGone) return;
    await this.signal('SIGKILL');
    await this.goneWithin(KILL_WAIT_MS);
  }

  /** To the whole group: an engine may have workers. Never to a process that merely has the same number. */
  private async signal(signal: NodeJS.Signals): Promise<void> {
    const { processIdentity } = this.record;
    if (processIdentity !== null && (await identityOf(this.processId)) !== processIdentity) return;
    try {
      process.kill(-this.processId, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  private async goneWithin(limitMs: number): Promise<boolean> {
    const timer = new AbortController();
    const limit = delay(limitMs, false, { signal: timer.signal }).catch(() => false);
    const gone = await Promise.race([this.exited.then(() => true), limit]);
    timer.abort();
    return gone;
  }
}

async function spawned(child: ChildProcess, command: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('spawn', resolve);
  child.once('error', (error) => reject(new EngineStartError('engine_missing', `${command} cannot be started: ${error.message}`, { cause: error })));
  return promise;
}

async function untilGone(pid: number, identity: string): Promise<string> {
  while ((await identityOf(pid)) === identity) await delay(EXIT_POLL_MS, undefined, { ref: false });
  return 'the engine ended (an earlier agent started it, so its exit code is not known)';
}

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A log that is longer than this when a server starts is set aside (one generation is kept). */
const LOG_BYTES_MAX = 16 * 1_048_576;
const LOG_TAIL_BYTES = 1_500;
const PROBE_INTERVAL_MS = 50;

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server that runs as a process of its own, outside the terminal's process group. */
export interface RunningServer {
  readonly name: string;
  /** Base URL without credentials. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Settles when the process has ended, whoever ended it. */
  readonly exited: Promise<ExitStatus>;
  /** Asks it to end, and ends it by force when it takes longer than its grace period. Safe to call again. */
  stop(): Promise<void>;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
}

export interface ServerCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** Both output streams are appended here. */
  readonly logFile: string;
  readonly port: number;
  readonly url: string;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeoutMs: number;
  readonly readyTimeoutMs: number;
  /** True once the server can be used. */
  readonly isReady: () => Promise<boolean>;
  /** Told of the process at once, before it is ready. */
  readonly onSpawn?: ((pid: number) => void) | undefined;
}

/** A server did not come up. The message holds the end of its log. */
export class ServerStartError extends Error {
  override readonly name = 'ServerStartError';
  constructor(readonly server: string, reason: string, readonly logTail: string, readonly logFile: string) {
    super(`${server} did not start: ${reason}${logTail === '' ? '' : `; it last said: ${logTail}`} (log: ${logFile})`);
  }
}

/** Starts a server and waits until it is ready. Throws {@link ServerStartError}; nothing is left running then. */
export async function startChildServer(command: ServerCommand): Promise<RunningServer> {
  const log = openLog(command.logFile);
  const child = spawn(command.command, command.args, {
    cwd: command.cwd, env: command.env ?? process.env, detached: true, stdio: ['ignore', log, log],
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
  });
  closeSync(log);
  if (child.pid !== undefined) command.onSpawn?.(child.pid);
  const { promise: exited, resolve } = Promise.withResolvers<ExitStatus>();
  let spawnError: Error | undefined;
  child.once('exit', (code, signal) => resolve({ code, signal }));
  child.once('error', (error) => {
    spawnError = error;
    resolve({ code: null, signal: null });
  });
  const server = new ChildServer(command, child, exited);
  const outcome = await waitUntilReady(command, exited);
  // A running server must not keep our event loop alive: whoever started it stops it.
  child.unref();
  if (outcome === 'ready') return server;
  const reason = spawnError?.message ?? (outcome === 'exited' ? `it ended with ${describeExit(await exited)}` : `it was not ready after ${command.readyTimeoutMs} ms`);
  if (spawnError === undefined) await server.kill();
  throw new ServerStartError(command.name, reason, readLogTail(command.logFile), command.logFile);
}

class ChildServer implements RunningServer {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  private hasExited = false;

  constructor(private readonly command: ServerCommand, private readonly child: ChildProcess, readonly exited: Promise<ExitStatus>) {
    this.name = command.name;
    this.url = command.url;
    this.port = command.port;
    this.pid = child.pid ?? 0;
    void exited.then(() => {
      this.hasExited = true;
    });
  }

  async stop(): Promise<void> {
    if (this.hasExited) return;
    this.child.ref();
    signalProcess(this.pid, this.command.stopSignal);
    const ended = await Promise.race([this.exited.then(() => true), delay(this.command.stopTimeoutMs, false, { ref: false })]);
    if (!ended) await this.kill();
  }

  async kill(): Promise<void> {
    this.child.ref();
    if (!this.hasExited && this.pid > 0) signalProcess(-this.pid, 'SIGKILL');
    await this.exited;
  }
}

async function waitUntilReady(command: ServerCommand, exited: Promise<ExitStatus>): Promise<'ready' | 'exited' | 'late'> {
  const deadline = performance.now() + command.readyTimeoutMs;
  let gone = false;
  void exited.then(() => {
    gone = true;
  });
  while (performance.now() < deadline) {
    if (gone) return 'exited';
    if (await command.isReady().catch(() => false)) return gone ? 'exited' : 'ready';
    await Promise.race([exited, delay(PROBE_INTERVAL_MS)]);
  }
  return gone ? 'exited' : 'late';
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function describeExit(status: ExitStatus): string {
  return status.signal ?? `exit code ${status.code ?? 'unknown'}`;
}

function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

function readLogTail(path: string): string {
  try {
    return readFileSync(path, 'utf8').slice(-LOG_TAIL_BYTES).trim().split('\n').slice(-4).join(' | ');
  } catch {
    return '';
  }
}

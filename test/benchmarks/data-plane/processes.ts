import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { endWithUs } from '../../platform/end-with-us.js';

/** What is measured has a core for itself, where there is one to spare; everything else shares the others. */
export const MEASURED_CORE = 0;
const START_WAIT_MS = 120_000;
const STOP_WAIT_MS = 5_000;

/** The cores of everything that is not measured, as `taskset` writes them; undefined where there is one core only. */
const otherCores = availableParallelism() > 1 ? `${MEASURED_CORE + 1}-${availableParallelism() - 1}` : undefined;

/** Moves this process, and so everything that it starts, to the cores of what is not measured. */
export function leaveMeasuredCore(): void {
  if (otherCores !== undefined) execFileSync('taskset', ['-a', '-c', '-p', otherCores, String(process.pid)], { stdio: 'ignore' });
}

/** A child process with its output in a file, and how much CPU it used. */
export class MeasuredProcess {
  private constructor(private readonly child: ChildProcess) {}

  static start(command: string, args: readonly string[], options: { readonly logFile: string; readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly measured?: boolean }): MeasuredProcess {
    const log = openSync(options.logFile, 'a');
    const [program, all] = otherCores === undefined ? [command, [...args]] : ['taskset', ['-c', options.measured === true ? String(MEASURED_CORE) : otherCores, command, ...args]];
    const child = spawn(program, all, { stdio: ['ignore', log, log], env: options.env ?? process.env, cwd: options.cwd });
    closeSync(log);
    endWithUs(child);
    return new MeasuredProcess(child);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** CPU time so far in microseconds: of all threads, and of child processes. */
  cpuMicroseconds(): number {
    return cpuOf(this.pid);
  }

  /** Resident memory in bytes, child processes included. */
  memoryBytes(): number {
    return familyOf(this.pid).reduce((sum, pid) => sum + residentOf(pid), 0);
  }

  async stop(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    const gone = await Promise.race([ended.then(() => true), pause(STOP_WAIT_MS, false)]);
    if (!gone) {
      this.child.kill('SIGKILL');
      await ended;
    }
  }
}

export function cpuOf(pid: number): number {
  let nanoseconds = 0;
  for (const member of familyOf(pid)) {
    for (const thread of tryRead(() => readdirSync(`/proc/${member}/task`), [])) {
      nanoseconds += Number(tryRead(() => readFileSync(`/proc/${member}/task/${thread}/schedstat`, 'utf8'), '0').split(' ')[0]);
    }
  }
  return nanoseconds / 1_000;
}

/** The process and those that it started. */
function familyOf(pid: number): readonly number[] {
  const children = tryRead(() => readdirSync(`/proc/${pid}/task`), []).flatMap((thread) => tryRead(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'), '').split(' ').filter((word) => word !== '').map(Number));
  return [pid, ...children.flatMap(familyOf)];
}

function residentOf(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(tryRead(() => readFileSync(`/proc/${pid}/status`, 'utf8'), ''));
  return Number(line?.[1] ?? 0) * 1_024;
}

function tryRead<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** Waits until somebody listens on the port. */
export async function untilListening(port: number, started: MeasuredProcess, name: string, logFile: string): Promise<void> {
  const deadline = performance.now() + START_WAIT_MS;
  while (performance.now() < deadline) {
    if (started.hasEnded) break;
    if (await isListening(port)) return;
    await pause(100);
  }
  throw new Error(`${name} does not listen on port ${port}; its log is ${logFile}`);
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { endWithUs } from './end-with-us.js';

const START_WAIT_MS = 60_000;
const READY_POLL_MS = 50;
const STOP_WAIT_MS = 30_000;
const PROBE_TIMEOUT_MS = 2_000;

/** One service as its own process, as an operator runs it: started, killed and started again on the same address. */
export class ServiceProcess {
  private child: ChildProcess | undefined;

  constructor(
    readonly name: string,
    private readonly root: string,
    private environment: Readonly<Record<string, string>>,
    readonly port: number,
    private readonly logFile: string,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** From the next start on. */
  withSetting(name: string, value: string): void {
    this.environment = { ...this.environment, [name]: value };
  }

  /** Resolves once the service says that it is ready. */
  async start(): Promise<void> {
    const log = createWriteStream(this.logFile, { flags: 'a' });
    this.child = spawn(process.execPath, ['--enable-source-maps', join(this.root, `apps/${this.name}/dist/main.js`)], {
      env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...this.environment, HTTP_PORT: String(this.port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithUs(this.child);
    this.child.stdout?.pipe(log, { end: false });
    this.child.stderr?.pipe(log, { end: false });
    await this.untilReady();
  }

  /** As a crash: no chance to clean up. */
  async kill(): Promise<void> {
    const child = this.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async stop(): Promise<void> {
    const child = this.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const gone = await Promise.race([exited.then(() => true), pause(STOP_WAIT_MS, false)]);
    if (!gone) await this.kill();
  }

  private async untilReady(): Promise<void> {
    const deadline = performance.now() + START_WAIT_MS;
    let last = 'it did not answer';
    while (performance.now() < deadline) {
      if (this.child?.exitCode !== null && this.child?.exitCode !== undefined) throw new Error(`${this.name} ended with code ${this.child.exitCode}; its log is ${this.logFile}`);
      try {
        const answer = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
        if (answer.ok) return;
        last = await answer.text();
      } catch (error) {
        last = error instanceof Error ? error.message : String(error);
      }
      await pause(READY_POLL_MS);
    }
    throw new Error(`${this.name} was not ready within ${START_WAIT_MS} ms: ${last}; its log is ${this.logFile}`);
  }
}

import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChildServer, type RunningServer } from '@penstock/infra-runtimes';
import type { Environment } from './settings.js';

/** One event loop uses one core; more processes than this on one machine are a mistake. */
export const GATEWAY_PROCESSES_MAX = 64;
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const RESTART_DELAY_MS = 1_000;

export interface MoreGateways {
  close(): Promise<void>;
}

export interface MoreGatewaysOptions {
  /** The settings of the first gateway; each further one gets a folder of its own beside it, and the same port. */
  readonly environment: Environment;
  /** How many beside the first. */
  readonly count: number;
  readonly logFolder: string;
}

/**
 * Gateways beside the one in this process, on the same port: the kernel spreads connections over them. Each is a process with its own
 * usage spool; one that ends is started again. They end when this process does, in whichever way.
 */
export async function startMoreGateways(options: MoreGatewaysOptions): Promise<MoreGateways> {
  const keepers = Array.from({ length: options.count }, (_, index) => new Keeper(options, index + 2));
  try {
    await Promise.all(keepers.map((keeper) => keeper.start()));
  } catch (error) {
    await Promise.all(keepers.map((keeper) => keeper.close()));
    throw error;
  }
  return { close: async () => void (await Promise.all(keepers.map((keeper) => keeper.close()))) };
}

class Keeper {
  private server: RunningServer | undefined;
  private isClosing = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: MoreGatewaysOptions, private readonly number: number) {}

  async start(): Promise<void> {
    const { environment, logFolder } = this.options;
    const logFile = join(logFolder, `gateway-${this.number}.out`);
    const from = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
    const port = Number(environment['HTTP_PORT']);
    const server = await startChildServer({
      name: `gateway ${this.number}`,
      command: process.execPath,
      args: ['--enable-source-maps', join(import.meta.dirname, '../../../../apps/gateway/dist/main.js')],
      env: { ...environment, DATA_DIR: `${environment['DATA_DIR'] ?? ''}-${this.number}`, HTTP_REUSE_PORT: 'true', PARENT_PID: String(process.pid) },
      logFile, port, url: `http://127.0.0.1:${port}`, stopSignal: 'SIGTERM', stopTimeoutMs: STOP_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS,
      // The port answers for any of them; only the process itself can say that it is up.
      isReady: async () => (await readFile(logFile)).subarray(from).includes('{"service":"gateway"'),
    });
    this.server = server;
    void server.exited.then(() => this.again());
    if (this.isClosing) await server.stop();
  }

  async close(): Promise<void> {
    this.isClosing = true;
    clearTimeout(this.timer);
    await this.server?.stop();
  }

  private again(): void {
    if (this.isClosing) return;
    this.timer = setTimeout(() => {
      this.start().catch(() => this.again());
    }, RESTART_DELAY_MS);
  }
}

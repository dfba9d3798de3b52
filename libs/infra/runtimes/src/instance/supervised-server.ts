import { setTimeout as delay } from 'node:timers/promises';
import { ServerStartError, type RunningServer } from '../process/child-server.js';
import { findFreePort, isPortFree } from '../process/free-port.js';
import type { EmbeddedServerName } from './embedded-settings.js';
import { launchServer, STOP_SIGNALS, urlWithCredentials, type LaunchOptions } from './launch-server.js';
import type { Instance } from './open-instance.js';

const PORT_ATTEMPTS_MAX = 3;
const RESTART_DELAY_MIN_MS = 100;
const RESTART_DELAY_MAX_MS = 5_000;
/** A server that fails this often in a row is given up. */
const RESTARTS_MAX = 10;
/** A server that ran this long counts as healthy again. */
const HEALTHY_AFTER_MS = 60_000;

/** What happens to an embedded server after its start. */
export interface ServerEvent {
  readonly server: EmbeddedServerName;
  readonly kind: 'moved' | 'ended' | 'restarted' | 'given-up';
  readonly message: string;
}

export type OnServerEvent = (event: ServerEvent) => void;

/** One embedded server of an instance: keeps its port, is recorded for the next start, and is started again when it dies. */
export class SupervisedServer {
  private current: RunningServer | undefined;
  private spawnedPid: number | undefined;
  private port = 0;
  private startedMs = 0;
  private failures = 0;
  private wanted = false;
  private restarting: Promise<void> = Promise.resolve();

  constructor(
    private readonly instance: Instance,
    readonly name: EmbeddedServerName,
    private readonly options: LaunchOptions,
    private readonly restartsByItself: boolean,
    private readonly onEvent: OnServerEvent,
  ) {}

  get url(): string {
    return urlWithCredentials(this.instance, this.name, this.port);
  }

  /** The process, from the moment it exists; undefined while there is none. */
  get pid(): number | undefined {
    return this.spawnedPid;
  }

  /** First start of this run: takes the remembered port, or another one when somebody else has it. */
  async start(): Promise<void> {
    const { state } = this.instance;
    for (let attempt = 1; ; attempt += 1) {
      this.port = await this.choosePort(state.port(this.name));
      try {
        await this.launch();
        await state.setPort(this.name, this.port);
        return;
      } catch (error) {
        const isPortTaken = error instanceof ServerStartError && /address already in use|EADDRINUSE/i.test(error.logTail);
        if (!isPortTaken || attempt >= PORT_ATTEMPTS_MAX) throw error;
      }
    }
  }

  async stop(): Promise<void> {
    this.wanted = false;
    await this.restarting;
    const server = this.current;
    if (server === undefined) return;
    await server.stop();
    await this.forget(server.pid);
    this.current = undefined;
  }

  /** Ends the process as a crash would; it comes back when the server restarts by itself. */
  async kill(): Promise<void> {
    await this.current?.kill();
  }

  /** Stops it, or finds it dead, and starts it again on the same port and data. */
  async restart(): Promise<void> {
    await this.stop();
    await this.launch();
  }

  /** Resolves when a restart under way is done. */
  async settled(): Promise<void> {
    await this.restarting;
  }

  private async choosePort(remembered: number | undefined): Promise<number> {
    if (remembered === undefined) return findFreePort();
    if (await isPortFree(remembered)) return remembered;
    const port = await findFreePort();
    this.onEvent({ server: this.name, kind: 'moved', message: `Port ${remembered} is taken by another program; ${this.name} uses ${port} now.` });
    return port;
  }

  private async launch(): Promise<void> {
    const server = await this.launchRecorded();
    this.current = server;
    this.startedMs = performance.now();
    this.wanted = true;
    void server.exited.then((status) => this.afterExit(server, status.signal ?? `exit code ${status.code ?? 'unknown'}`));
  }

  /** The process is on record before it is ready, so that nothing is lost when we are ended in between. */
  private async launchRecorded(): Promise<RunningServer> {
    const records: Promise<void>[] = [];
    const onSpawn = (pid: number): void => {
      this.spawnedPid = pid;
      records.push(this.instance.state.recordChild(this.name, pid, STOP_SIGNALS[this.name]));
    };
    try {
      return await launchServer(this.instance, this.name, this.port, this.options, onSpawn);
    } catch (error) {
      await Promise.all(records);
      if (this.spawnedPid !== undefined) await this.forget(this.spawnedPid);
      throw error;
    } finally {
      await Promise.all(records);
    }
  }

  private async forget(pid: number): Promise<void> {
    if (this.spawnedPid === pid) this.spawnedPid = undefined;
    await this.instance.state.forgetChild(pid);
  }

  private async afterExit(server: RunningServer, how: string): Promise<void> {
    if (this.current !== server || !this.wanted) return;
    await this.forget(server.pid);
    this.onEvent({ server: this.name, kind: 'ended', message: `${this.name} (process ${server.pid}) ended with ${how}.` });
    if (!this.restartsByItself) return;
    if (performance.now() - this.startedMs > HEALTHY_AFTER_MS) this.failures = 0;
    this.restarting = this.bringBack();
    await this.restarting;
  }

  private async bringBack(): Promise<void> {
    while (this.wanted && this.failures < RESTARTS_MAX) {
      await delay(Math.min(RESTART_DELAY_MIN_MS * 2 ** this.failures, RESTART_DELAY_MAX_MS));
      this.failures += 1;
      if (!this.wanted) return;
      try {
        await this.launch();
        this.onEvent({ server: this.name, kind: 'restarted', message: `${this.name} runs again as process ${this.current?.pid ?? 0}.` });
        return;
      } catch (error) {
        this.onEvent({ server: this.name, kind: 'ended', message: (error as Error).message });
      }
    }
    if (this.wanted) this.onEvent({ server: this.name, kind: 'given-up', message: `${this.name} failed ${RESTARTS_MAX} times and is not started again; see ${this.instance.path('logs', `${this.name}.log`)}.` });
  }
}

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureRuntime } from '@penstock/infra-runtimes';

export interface TestNats {
  readonly url: string;
  /** Of the running server; it changes with a restart. */
  readonly pid: number;
  /** `kill -9`; resolves once the process is gone. */
  kill(): Promise<void>;
  /** Starts again on the same port and data after `kill`, or kills first. */
  restart(): Promise<void>;
  /** Stops the server and removes its data. */
  close(): Promise<void>;
}

export interface TestNatsOptions {
  readonly user?: string | undefined;
  readonly password?: string | undefined;
}

const START_TIMEOUT_MS = 20_000;
const POLL_MS = 20;

/** Starts a real NATS server with JetStream on a free loopback port and a temporary folder. */
export async function startTestNats(options: TestNatsOptions = {}): Promise<TestNats> {
  const binary = process.env['NATS_SERVER_BIN'] ?? (await ensureRuntime('nats-server')).path;
  const folder = await mkdtemp(join(tmpdir(), 'penstock-nats-'));
  const server = new TestNatsServer(binary, folder, await freePort(), options);
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class TestNatsServer implements TestNats {
  private child: ChildProcess | undefined;

  constructor(private readonly binary: string, private readonly folder: string, private readonly port: number, private readonly options: TestNatsOptions) {}

  get url(): string {
    const { user, password } = this.options;
    return user === undefined ? `nats://127.0.0.1:${this.port}` : `nats://${user}:${password ?? ''}@127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const { user, password } = this.options;
    const credentials = user === undefined ? [] : ['--user', user, '--pass', password ?? ''];
    const logPath = join(this.folder, 'server.log');
    const log = openSync(logPath, 'a');
    const child = spawn(this.binary, ['-a', '127.0.0.1', '-p', String(this.port), '-js', '-sd', join(this.folder, 'data'), ...credentials], { stdio: ['ignore', log, log] });
    closeSync(log);
    this.child = child;
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    failed.catch(() => undefined);
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (!(await Promise.race([answers(this.port), failed]))) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`nats-server did not start:\n${await readFile(logPath, 'utf8')}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async kill(): Promise<void> {
    const child = this.child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async close(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A free port of the loopback interface, as the system gives it. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** True once the server greets with its INFO line. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (isUp: boolean): void => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once('data', (bytes: Buffer) => finish(bytes.toString('latin1').startsWith('INFO')));
    socket.once('error', () => finish(false));
    socket.setTimeout(1_000, () => finish(false));
  });
}

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { startChildServer, type RunningServer } from '../process/child-server.js';
import { readGreeting } from '../process/free-port.js';
import { isAtLeast } from '../install/executable-version.js';
import { NATS_MINIMUM_VERSION } from '../manifest.js';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const serverInfo = z.object({ version: z.string(), jetstream: z.boolean().optional() });

/** A user beside the operator's, with what it may publish and subscribe to; everything else is refused. */
export interface NatsUser {
  readonly user: string;
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

export interface NatsServerOptions {
  /** The nats-server executable. */
  readonly path: string;
  /** Folder for the configuration and the JetStream store. */
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** More users, each with a password of its own. */
  readonly users?: readonly (NatsUser & { readonly password: string })[] | undefined;
  /** When written events are forced to disk: after each write, or at the latest after this many seconds. */
  readonly syncInterval: 'always' | { readonly seconds: number };
  /** Told of the process at once, before it is ready. */
  readonly onSpawn?: ((pid: number) => void) | undefined;
}

/** Starts a NATS server with JetStream on the loopback address; every client needs a user and its password. */
export async function startNatsServer(options: NatsServerOptions): Promise<RunningServer> {
  await mkdir(options.dataDir, { recursive: true });
  const configFile = join(options.dataDir, 'nats-server.conf');
  await writeFile(configFile, configuration(options), { mode: 0o600 });
  return startChildServer({
    name: 'nats', command: options.path, args: ['--config', configFile], logFile: options.logFile,
    port: options.port, url: `nats://127.0.0.1:${options.port}`,
    stopSignal: 'SIGTERM', stopTimeoutMs: STOP_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS,
    onSpawn: options.onSpawn,
    isReady: () => isNatsReady(options.port),
  });
}

/** The server opens its port only after its streams are recovered, so its greeting is enough. */
async function isNatsReady(port: number): Promise<boolean> {
  const greeting = await readGreeting(port);
  if (greeting === undefined || !greeting.startsWith('INFO ')) return false;
  const info = serverInfo.parse(JSON.parse(greeting.slice('INFO '.length)));
  return info.jetstream === true && isAtLeast(info.version, NATS_MINIMUM_VERSION);
}

function configuration(options: NatsServerOptions): string {
  const quoted = (text: string): string => JSON.stringify(text);
  const sync = options.syncInterval === 'always' ? 'always' : quoted(`${options.syncInterval.seconds}s`);
  return [
    'server_name: penstock',
    'listen: ' + quoted(`127.0.0.1:${options.port}`),
    'jetstream {',
    `  store_dir: ${quoted(join(options.dataDir, 'jetstream'))}`,
    `  sync_interval: ${sync}`,
    '}',
    'authorization {',
    '  users: [',
    `    { user: ${quoted(options.user)}, password: ${quoted(options.password)} }`,
    ...(options.users ?? []).map(({ user, password, publish, subscribe }) =>
      `    { user: ${quoted(user)}, password: ${quoted(password)}, permissions: { publish: { allow: ${JSON.stringify(publish)} }, subscribe: { allow: ${JSON.stringify(subscribe)} } } }`),
    '  ]',
    '}',
    '',
  ].join('\n');
}

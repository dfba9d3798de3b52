import { mkdir } from 'node:fs/promises';
import { ensureRuntime } from '../ensure-runtime.js';
import type { OnInstallProgress } from '../install/install-context.js';
import type { RuntimeName } from '../manifest.js';
import type { RunningServer } from '../process/child-server.js';
import { startClickhouse } from '../servers/clickhouse-server.js';
import { startNatsServer, type NatsUser } from '../servers/nats-server.js';
import { startPostgres } from '../servers/postgres-server.js';
import type { EmbeddedServerName } from './embedded-settings.js';
import { natsPasswordOf } from './instance-secrets.js';
import type { Instance } from './open-instance.js';

/** User, and where there is one database, under this name. */
const ACCOUNT = 'penstock';
const RUNTIME_OF: Readonly<Record<EmbeddedServerName, RuntimeName>> = { nats: 'nats-server', postgres: 'postgres', clickhouse: 'chdb' };

export interface LaunchOptions {
  /** False skips forced writes to disk: for tests, where a power loss does not matter. */
  readonly syncToDisk: boolean;
  /** Seconds after which NATS forces events to disk at the latest, or `always` for each. */
  readonly natsSyncInterval: 'always' | { readonly seconds: number };
  /** Users of NATS beside the operator's. */
  readonly natsUsers?: readonly NatsUser[] | undefined;
  readonly onInstallProgress: OnInstallProgress | undefined;
}

/** Installs the runtime of one embedded server where needed, and starts the server on the given port. */
export async function launchServer(instance: Instance, name: EmbeddedServerName, port: number, options: LaunchOptions, onSpawn: (pid: number) => void): Promise<RunningServer> {
  const { path } = await ensureRuntime(RUNTIME_OF[name], { cacheDir: instance.cacheDir, env: instance.env, onProgress: options.onInstallProgress });
  await mkdir(instance.path('logs'), { recursive: true, mode: 0o700 });
  const common = { path, port, dataDir: instance.path(name), logFile: instance.path('logs', `${name}.log`), user: ACCOUNT, onSpawn };
  const { secrets } = instance;
  switch (name) {
    case 'nats':
      await mkdir(common.dataDir, { recursive: true, mode: 0o700 });
      return startNatsServer({ ...common, password: secrets.natsPassword, users: options.natsUsers?.map((user) => ({ ...user, password: natsPasswordOf(secrets, user.user) })), syncInterval: options.natsSyncInterval });
    case 'postgres':
      return startPostgres({ ...common, password: secrets.postgresPassword, database: ACCOUNT, syncToDisk: options.syncToDisk });
    case 'clickhouse':
      return startClickhouse({ ...common, password: secrets.clickhousePassword, database: ACCOUNT });
  }
}

/** The address of an embedded server with its credentials. */
export function urlWithCredentials(instance: Instance, name: EmbeddedServerName, port: number): string {
  switch (name) {
    case 'nats': return `nats://${ACCOUNT}:${instance.secrets.natsPassword}@127.0.0.1:${port}`;
    case 'postgres': return `postgres://${ACCOUNT}:${instance.secrets.postgresPassword}@127.0.0.1:${port}/${ACCOUNT}`;
    case 'clickhouse': return `http://${ACCOUNT}:${instance.secrets.clickhousePassword}@127.0.0.1:${port}/${ACCOUNT}`;
  }
}

/** The signal that ends each server in an orderly way. */
export const STOP_SIGNALS: Readonly<Record<EmbeddedServerName, 'SIGTERM' | 'SIGINT'>> = { nats: 'SIGTERM', postgres: 'SIGINT', clickhouse: 'SIGTERM' };

import type { OnInstallProgress } from '../install/install-context.js';
import { readExternalServers, URL_FIELDS, type EmbeddedServerName, type EmbeddedUrls, type ObjectStoreSettings } from './embedded-settings.js';
import type { LaunchOptions } from './launch-server.js';
import { natsPasswordOf } from './instance-secrets.js';
import type { NatsUser } from '../servers/nats-server.js';
import type { Instance } from './open-instance.js';
import { SupervisedServer, type OnServerEvent } from './supervised-server.js';

const ALL_SERVERS: readonly EmbeddedServerName[] = ['nats', 'postgres', 'clickhouse'];
const NATS_SYNC_SECONDS = 1;

export interface StartEmbeddedOptions<Name extends EmbeddedServerName> {
  /** Only these; all by default. */
  readonly only?: readonly Name[] | undefined;
  readonly onProgress?: OnInstallProgress | undefined;
  readonly onEvent?: OnServerEvent | undefined;
  /** Start a server again when it dies. Default: true. */
  readonly restartsByItself?: boolean | undefined;
  /** Default: true. */
  readonly syncToDisk?: boolean | undefined;
  /** Users of the embedded NATS beside the operator's, each with its allow-lists. */
  readonly natsUsers?: readonly NatsUser[] | undefined;
  /** Default: one second. */
  readonly natsSyncInterval?: LaunchOptions['natsSyncInterval'] | undefined;
}

export interface ServerStatus {
  readonly name: EmbeddedServerName;
  /** The process, or undefined for a server that runs elsewhere or is down. */
  readonly pid: number | undefined;
  /** True when the environment names a server that runs elsewhere. */
  readonly isExternal: boolean;
}

export type EmbeddedServers<Name extends EmbeddedServerName = EmbeddedServerName> = EmbeddedUrls<Name> & {
  readonly objects: ObjectStoreSettings;
  /** NATS with the credentials of one of `natsUsers`; a server that runs elsewhere keeps those of its setting. */
  natsUrlOf(user: string): string;
  status(): readonly ServerStatus[];
  /** Ends a server's process as a crash would. */
  kill(name: Name): Promise<void>;
  /** Stops a server, or finds it dead, and starts it again on the same port and data. */
  restart(name: Name): Promise<void>;
  /** Stops all of them in an orderly way. */
  stop(): Promise<void>;
};

/**
 * Starts the embedded servers of an instance that no setting replaces (`NATS_URL`, `DATABASE_URL`, `CLICKHOUSE_URL`,
 * `S3_ENDPOINT` with the other `S3_…`). When one cannot be started, the others are stopped and its error is thrown.
 */
export async function startEmbedded<Name extends EmbeddedServerName = EmbeddedServerName>(instance: Instance, options: StartEmbeddedOptions<Name> = {}): Promise<EmbeddedServers<Name>> {
  const external = readExternalServers(instance.env);
  const names: readonly EmbeddedServerName[] = options.only ?? ALL_SERVERS;
  const launch: LaunchOptions = {
    syncToDisk: options.syncToDisk ?? true,
    natsSyncInterval: options.natsSyncInterval ?? { seconds: NATS_SYNC_SECONDS },
    natsUsers: options.natsUsers,
    onInstallProgress: options.onProgress,
  };
  const servers = names
    .filter((name) => external.urls[name] === undefined)
    .map((name) => new SupervisedServer(instance, name, launch, options.restartsByItself ?? true, options.onEvent ?? (() => undefined)));
  // Whoever leaves without stopping them, even in the middle of the start, leaves no process behind.
  const killAll = (): void => {
    for (const { pid } of servers) if (pid !== undefined) killGroup(pid);
  };
  process.once('exit', killAll);
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
    process.off('exit', killAll);
  };
  const starts = await Promise.allSettled(servers.map((server) => server.start()));
  const failed = starts.find((start) => start.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  const find = (name: EmbeddedServerName): SupervisedServer => {
    const server = servers.find((candidate) => candidate.name === name);
    if (server === undefined) throw new Error(`${name} is not run by this instance: it was not asked for, or the environment names another one.`);
    return server;
  };
  const urls = Object.fromEntries(names.map((name) => [URL_FIELDS[name], external.urls[name] ?? find(name).url])) as EmbeddedUrls<Name>;
  return {
    ...urls,
    objects: external.s3 ?? { kind: 'filesystem', root: instance.path('objects') },
    natsUrlOf: (user) => external.urls.nats ?? find('nats').url.replace(/\/\/[^@]*@/, `//${user}:${natsPasswordOf(instance.secrets, user)}@`),
    status: () => names.map((name) => ({ name, pid: servers.find((server) => server.name === name)?.pid, isExternal: external.urls[name] !== undefined })),
    kill: (name) => find(name).kill(),
    restart: (name) => find(name).restart(),
    stop,
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}

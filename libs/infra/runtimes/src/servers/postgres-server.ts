import { access, chown, cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ServerStartError, startChildServer, type RunningServer } from '../process/child-server.js';
import { runTool } from '../process/run-tool.js';
import { isReachableByOthers, reachableStandIn, unprivilegedUser, type UnprivilegedUser } from './unprivileged-user.js';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const INITDB_TIMEOUT_MS = 120_000;
/** After a crash the kernel needs a moment until the old server's shared memory is free. */
const BUSY_RETRIES_MAX = 20;
const BUSY_DELAY_MS = 500;
/** The folder that holds the executables' shared libraries and data, seen from the executable. */
const DISTRIBUTION_DEPTH = '../..';
/** Version 3.0 of the wire protocol. */
const PROTOCOL_VERSION = 196_608;
const HANDSHAKE_TIMEOUT_MS = 1_000;

export interface PostgresServerOptions {
  /** The `postgres` executable; `initdb` lies beside it. */
  readonly path: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** Made together with the cluster. */
  readonly database: string;
  /** False trades safety against power loss for speed; a crash of the process loses nothing either way. */
  readonly syncToDisk: boolean;
  /** Told of the process at once, before it is ready. */
  readonly onSpawn?: ((pid: number) => void) | undefined;
}

/**
 * Starts PostgreSQL on the loopback address, with passwords (scram) and without a Unix socket.
 * As root it runs as `postgres` or `nobody`, with its files where such a user can reach them.
 */
export async function startPostgres(options: PostgresServerOptions): Promise<RunningServer> {
  const user = await unprivilegedUser();
  const binaries = await reachableBinaries(dirname(options.path), user);
  const dataDir = await ownedDataDir(options.dataDir, user);
  await initialise(binaries, dataDir, user, options);
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await startOnce(binaries, dataDir, user, options);
    } catch (error) {
      const isBusy = error instanceof ServerStartError && /shared memory block|still in use|already exists/.test(error.logTail);
      if (!isBusy || attempt >= BUSY_RETRIES_MAX) throw error;
      await delay(BUSY_DELAY_MS);
    }
  }
}

function startOnce(binaries: string, dataDir: string, user: UnprivilegedUser | undefined, options: PostgresServerOptions): Promise<RunningServer> {
  return startChildServer({
    name: 'postgres', command: join(binaries, 'postgres'),
    args: ['-D', dataDir, '-p', String(options.port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...(options.syncToDisk ? [] : ['-c', 'fsync=off'])],
    ...user, cwd: dataDir, logFile: options.logFile, env: serverEnvironment(),
    port: options.port, url: `postgres://127.0.0.1:${options.port}/${options.database}`,
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
    stopSignal: 'SIGINT', stopTimeoutMs: STOP_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS,
    onSpawn: options.onSpawn,
    isReady: () => asksForPassword(options),
  });
}

/** A copy of the executables where the unprivileged user can reach them, unless it already can. */
async function reachableBinaries(binaries: string, user: UnprivilegedUser | undefined): Promise<string> {
  if (user === undefined || (await isReachableByOthers(binaries))) return binaries;
  const distribution = join(binaries, DISTRIBUTION_DEPTH);
  const copy = join(reachableStandIn(distribution), basename(distribution));
  const inCopy = join(copy, basename(join(binaries, '..')), basename(binaries));
  if (await access(join(inCopy, 'postgres')).then(() => true, () => false)) return inCopy;
  await mkdir(dirname(copy), { recursive: true, mode: 0o755 });
  await cp(distribution, `${copy}.partial`, { recursive: true, verbatimSymlinks: true });
  await rm(copy, { recursive: true, force: true });
  await rename(`${copy}.partial`, copy);
  return inCopy;
}

async function ownedDataDir(wanted: string, user: UnprivilegedUser | undefined): Promise<string> {
  const parent = dirname(wanted);
  await mkdir(parent, { recursive: true });
  if (user === undefined || (await isReachableByOthers(parent))) return wanted;
  const standIn = reachableStandIn(wanted);
  await mkdir(standIn, { recursive: true, mode: 0o755 });
  return join(standIn, basename(wanted));
}

/** Makes the cluster and the database beside the final folder, so that a crash in the middle leaves nothing half made. */
async function initialise(binaries: string, dataDir: string, user: UnprivilegedUser | undefined, options: PostgresServerOptions): Promise<void> {
  if (await access(join(dataDir, 'PG_VERSION')).then(() => true, () => false)) return;
  const fresh = `${dataDir}.new`;
  const passwordFile = `${dataDir}.password`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await writeFile(passwordFile, options.password, { mode: 0o600 });
  if (user !== undefined) for (const path of [fresh, passwordFile]) await chown(path, user.uid, user.gid);
  const tool = { ...user, cwd: fresh, timeoutMs: INITDB_TIMEOUT_MS, env: serverEnvironment() };
  try {
    const args = ['-D', fresh, '-U', options.user, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-instructions', ...(options.syncToDisk ? [] : ['--no-sync'])];
    await runTool(join(binaries, 'initdb'), args, tool);
    // Single-user mode needs no client program, and the distribution has none.
    await runTool(join(binaries, 'postgres'), ['--single', '-j', '-D', fresh, 'postgres'], { ...tool, input: `CREATE DATABASE "${options.database}";\n\n` });
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rm(dataDir, { recursive: true, force: true });
  await rename(fresh, dataDir);
}

function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
}

/** The port opens before the database is recovered; only then does a start-up message get an authentication request (`R`). */
function asksForPassword(options: PostgresServerOptions): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: '127.0.0.1', port: options.port, timeout: HANDSHAKE_TIMEOUT_MS });
  socket.once('connect', () => socket.write(startupMessage(options)));
  socket.once('data', (answer) => resolve(answer.toString('latin1').startsWith('R')));
  for (const event of ['error', 'timeout', 'close']) socket.once(event, () => resolve(false));
  return promise.finally(() => socket.destroy());
}

function startupMessage(options: PostgresServerOptions): Buffer {
  const body = Buffer.from(`user\0${options.user}\0database\0${options.database}\0\0`, 'utf8');
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + body.length, 0);
  head.writeInt32BE(PROTOCOL_VERSION, 4);
  return Buffer.concat([head, body]);
}

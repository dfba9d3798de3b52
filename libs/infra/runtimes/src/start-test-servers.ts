import { spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedServerName } from './instance/embedded-settings.js';
import { openInstance, type Instance } from './instance/open-instance.js';
import { startEmbedded, type EmbeddedServers } from './instance/start-embedded.js';
import type { NatsUser } from './servers/nats-server.js';
import { isReachableByOthers, reachableStandIn } from './servers/unprivileged-user.js';

/** Root's PostgreSQL runs as another user and must be able to walk through. */
const MODE_WALKABLE = 0o711;

export type TestServers<Name extends EmbeddedServerName> = EmbeddedServers<Name> & {
  readonly instance: Instance;
  /** Stops everything and removes the data. */
  close(): Promise<void>;
};

export interface StartTestServersOptions {
  /** Force each NATS write to disk. Default: false. */
  readonly natsSyncAlways?: boolean | undefined;
  /** Users of NATS beside the operator's. */
  readonly natsUsers?: readonly NatsUser[] | undefined;
}

/** Real servers for one test file: fresh data in a temporary folder, random ports, no automatic restart. */
export async function startTestServers<Name extends EmbeddedServerName>(names: readonly Name[], options: StartTestServersOptions = {}): Promise<TestServers<Name>> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-test-'));
  await chmod(folder, MODE_WALKABLE);
  startGuard(folder);
  const remove = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    const standIn = reachableStandIn(join(folder, 'postgres'));
    if (!(await isReachableByOthers(tmpdir()))) await rm(standIn, { recursive: true, force: true });
  };
  // Settings for a real installation must not lead a test there; only what installing needs is kept.
  const replaced = ['NATS_URL', 'DATABASE_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT', 'PENSTOCK_HOME'];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !replaced.includes(name)));
  const instance = await openInstance({ dataDir: folder, env });
  try {
    const servers = await startEmbedded(instance, {
      only: names, restartsByItself: false, syncToDisk: false, natsUsers: options.natsUsers,
      natsSyncInterval: options.natsSyncAlways === true ? 'always' : { seconds: 60 },
    });
    const close = async (): Promise<void> => {
      await servers.stop();
      await instance.close();
      await remove();
    };
    return { ...servers, instance, close };
  } catch (error) {
    await instance.close();
    await remove();
    throw error;
  }
}

/**
 * A test run may be ended by force. This small process notices, since its input ends then, and clears up; after an
 * orderly end it finds nothing to do. It knows the servers from the state file, which is printed with one field a line.
 */
function startGuard(folder: string): void {
  const script = `cat > /dev/null
    sed -n 's/^ *"pid": \\([0-9]*\\),$/\\1/p' "$0/state.json" 2> /dev/null | while read -r pid; do kill -9 "-$pid"; done
    rm -rf "$0"`;
  const guard = spawn('/bin/sh', ['-c', script, folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  guard.on('error', () => undefined);
  guard.unref();
  (guard.stdin as Socket).unref();
}

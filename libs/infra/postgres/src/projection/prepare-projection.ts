import type { EventLog } from '@penstock/kernel';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { lockStructure, runMigrations } from '../migrations/run-migrations.js';
import { readCheckpoints, resetCheckpoints } from './checkpoints.js';
import { recreateTables } from './create-tables.js';
import { replaceOldVersion } from './rebuild-projection.js';
import type { TableProjection } from './table-projection.js';

export type Preparation =
  | { readonly kind: 'ready' }
  /** A newer version of the platform owns the tables. */
  | { readonly kind: 'replaced'; readonly version: number };

/** Makes the books and the tables of a projection exist in its version. Several processes may do this at once. */
export async function prepareProjection(connection: PostgresConnection, log: EventLog, projection: TableProjection): Promise<Preparation> {
  const version = await connection.transaction(async (manager) => {
    await lockStructure(manager);
    await runMigrations(manager);
    const checkpoints = await readCheckpoints(manager, projection.name);
    if (checkpoints.size === 0) {
      await recreateTables(manager, projection, projection.schema);
      await resetCheckpoints(manager, projection, new Map(projection.streams.map((stream) => [stream, 0])));
      return projection.version;
    }
    return Math.max(...[...checkpoints.values()].map((checkpoint) => checkpoint.version));
  });
  if (version > projection.version) return { kind: 'replaced', version };
  if (version < projection.version) await replaceOldVersion(connection, log, projection);
  return { kind: 'ready' };
}

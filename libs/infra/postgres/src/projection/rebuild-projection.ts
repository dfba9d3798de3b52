import type { EntityManager } from '@mikro-orm/postgresql';
import type { StreamName } from '@penstock/contract-events';
import type { EventLog, Positions, ProjectionVerification } from '@penstock/kernel';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { digestTables, type DumpDigest } from './canonical-dump.js';
import { readCheckpoints } from './checkpoints.js';
import { ShadowBuild } from './shadow-build.js';
import type { TableProjection } from './table-projection.js';

/** Rounds of catching up before the live projector is made to wait for the last few events. */
const CATCH_UP_ROUNDS_MAX = 5;

/** Somebody else verifies or rebuilds this projection right now. */
export class RebuildBusyError extends Error {
  override readonly name = 'RebuildBusyError';
  constructor(readonly projection: string) {
    super(`Projection ${projection} is being rebuilt or verified already; try again when that is done.`);
  }
}

/** Compares the live tables with ones built from the first event, at the same positions. The live projector goes on meanwhile. */
export function verifyProjection(connection: PostgresConnection, log: EventLog, projection: TableProjection): Promise<ProjectionVerification> {
  return exclusively(connection, projection, async () => {
    const shadow = new ShadowBuild(connection, log, projection);
    await shadow.create();
    await shadow.fillTo(await livePositions(connection, projection));
    // One snapshot shows rows and checkpoints as one transaction left them, so the live side needs no lock.
    const live = await connection.transaction(async (manager) => ({
      positions: positionsOf(await readCheckpoints(manager, projection.name), projection),
      dump: await digestTables(manager, projection, projection.schema),
    }), { isSnapshot: true });
    await shadow.fillTo(live.positions);
    const rebuilt = await connection.transaction((manager) => shadow.digest(manager), { isSnapshot: true });
    await shadow.drop();
    return verificationOf(projection, shadow, live.dump, rebuilt);
  });
}

/** Builds the projection from the first event and swaps it in. The live projector waits while the last events are caught up. */
export function rebuildProjection(connection: PostgresConnection, log: EventLog, projection: TableProjection): Promise<ProjectionVerification> {
  return exclusively(connection, projection, async (guard) => {
    const shadow = new ShadowBuild(connection, log, projection);
    await shadow.create();
    await catchUp(shadow, () => livePositions(connection, projection));
    await shadow.fillTo(positionsOf(await readCheckpoints(guard, projection.name, { isLocked: true }), projection));
    const live = await digestTables(guard, projection, projection.schema);
    const rebuilt = await shadow.digest(guard);
    await shadow.swapIn(guard);
    return verificationOf(projection, shadow, live, rebuilt);
  });
}

/** Replaces tables of an older version, whose shape nobody knows any more, by ones built from the whole log. */
export function replaceOldVersion(connection: PostgresConnection, log: EventLog, projection: TableProjection): Promise<void> {
  return exclusively(connection, projection, async (guard) => {
    const shadow = new ShadowBuild(connection, log, projection);
    await shadow.create();
    await catchUp(shadow, () => endPositions(log, projection));
    await readCheckpoints(guard, projection.name, { isLocked: true });
    await shadow.swapIn(guard);
  });
}

/** Runs `work` while nobody else rebuilds the projection. The guard transaction dies with its connection, and a swap inside it too. */
function exclusively<Result>(connection: PostgresConnection, projection: TableProjection, work: (guard: EntityManager) => Promise<Result>): Promise<Result> {
  return connection.transaction(async (guard) => {
    const [row] = await guard.execute<{ locked: boolean }[]>('select pg_try_advisory_xact_lock(hashtextextended(?, 727002)) as locked', [projection.name]);
    if (row?.locked !== true) throw new RebuildBusyError(projection.name);
    return work(guard);
  });
}

async function catchUp(shadow: ShadowBuild, targets: () => Promise<ReadonlyMap<StreamName, number>>): Promise<void> {
  for (let round = 0; round < CATCH_UP_ROUNDS_MAX; round += 1) {
    const wanted = await targets();
    if ([...wanted].every(([stream, position]) => (shadow.positions().get(stream) ?? 0) >= position)) return;
    await shadow.fillTo(wanted);
  }
}

function livePositions(connection: PostgresConnection, projection: TableProjection): Promise<ReadonlyMap<StreamName, number>> {
  return connection.transaction(async (manager) => positionsOf(await readCheckpoints(manager, projection.name), projection));
}

async function endPositions(log: EventLog, projection: TableProjection): Promise<ReadonlyMap<StreamName, number>> {
  const ends = new Map<StreamName, number>();
  for (const stream of projection.streams) ends.set(stream, (await log.bounds(stream)).lastSequence);
  return ends;
}

function positionsOf(checkpoints: Awaited<ReturnType<typeof readCheckpoints>>, projection: TableProjection): ReadonlyMap<StreamName, number> {
  return new Map(projection.streams.map((stream) => [stream, checkpoints.get(stream)?.lastSequence ?? 0]));
}

function verificationOf(projection: TableProjection, shadow: ShadowBuild, live: DumpDigest, rebuilt: DumpDigest): ProjectionVerification {
  const positions: Positions = Object.fromEntries(shadow.positions());
  return {
    name: projection.name,
    identical: live.digest === rebuilt.digest,
    events: shadow.events,
    rows: rebuilt.rows,
    liveDigest: live.digest,
    rebuiltDigest: rebuilt.digest,
    positions,
  };
}

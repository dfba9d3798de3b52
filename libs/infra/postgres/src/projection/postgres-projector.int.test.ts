import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startTestServers } from '@penstock/infra-runtimes';
import { silentLogger } from '@penstock/kernel';
import { eventually, MemoryEventLog } from '@penstock/testing-kit';
import fc from 'fast-check';
import { connectPostgres, type PostgresConnection } from '../connection/connect-postgres.js';
import { expectedTally, POISON_REASON, tallyProjection, tallyTable } from '../testing/tally-projection.js';
import { PostgresProjector } from './postgres-projector.js';
import { RebuildBusyError, verifyProjection } from './rebuild-projection.js';
import type { PoisonedEvent } from './stream-applier.js';
import type { TableProjection } from './table-projection.js';

const WAIT_MS = 30_000;
const STREAM = 'EV_SCALING';

let servers: Awaited<ReturnType<typeof startTestServers<'postgres'>>>;
let connection: PostgresConnection;
let log: MemoryEventLog;
let projectors: PostgresProjector[] = [];
let commands = 0;
let runs = 0;
let projection: TableProjection;

beforeAll(async () => {
  servers = await startTestServers(['postgres']);
  connection = await connectPostgres(servers.databaseUrl, { logger: silentLogger, tables: [tallyTable] });
}, 300_000);

afterAll(async () => {
  await connection?.close();
  await servers?.close();
});

beforeEach(() => {
  log = new MemoryEventLog();
  runs += 1;
  projection = tallyProjection(`tally-${runs}`);
});

afterEach(async () => {
  await Promise.all(projectors.map((projector) => projector.close()));
  projectors = [];
});

async function scale(endpointId: string, to: number, reason = 'because'): Promise<number> {
  commands += 1;
  const result = await log.append({
    ref: { context: 'scaling', aggregate: 'endpoint-scale', id: endpointId },
    events: [{ type: 'wanted-replicas.changed.v1', data: { endpointId, from: 0, to, rule: 'floor', reason, signals: {} } }],
    expected: 'any', commandId: `cmd_${commands}`, source: 'test', nowMs: 1_000 * commands, correlationId: 'c', causationId: 'c',
  });
  return result.kind === 'appended' ? result.lastSequence : 0;
}

async function scaleMany(count: number): Promise<number> {
  let last = 0;
  for (let index = 0; index < count; index += 1) last = await scale(`ep_${index % 7}`, index % 5);
  return last;
}

function start(onPoison?: (poisoned: PoisonedEvent) => Promise<void>, of: TableProjection = projection): PostgresProjector {
  const projector = PostgresProjector.start({ connection, log, projection: of, logger: silentLogger, onPoison });
  projectors.push(projector);
  return projector;
}

const rows = () => connection.transaction((manager) => manager.find(tallyTable, {}, { schema: 'scaling', orderBy: { endpointId: 'asc' }, disableIdentityMap: true }));
const plainRows = async () => (await rows()).map((row) => ({ ...row }));

describe('PostgresProjector', () => {
  test('applies what stands in the log and what arrives, and shows its positions', async () => {
    await scaleMany(1_200);
    const projector = start();
    await projector.waitFor(STREAM, 1_200, WAIT_MS);
    const last = await scale('ep_late', 4);
    await projector.waitFor(STREAM, last, WAIT_MS);
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
    expect(await projector.positions()).toEqual({ [STREAM]: 1_201 });
    expect(await projector.check()).toBeUndefined();
  });

  test('goes on from its checkpoint after a restart', async () => {
    const first = start();
    await first.waitFor(STREAM, await scaleMany(20), WAIT_MS);
    await first.close();
    const last = await scaleMany(15);
    await start().waitFor(STREAM, last, WAIT_MS);
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
  });

  test('several projectors at once apply each event once', async () => {
    const running = [start(), start(), start()];
    const last = await scaleMany(400);
    await Promise.all(running.map((projector) => projector.waitFor(STREAM, last, WAIT_MS)));
    const further = await scaleMany(400);
    await Promise.all(running.map((projector) => projector.waitFor(STREAM, further, WAIT_MS)));
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
    expect((await running[0]!.verify()).identical).toBe(true);
  });

  test('leaves out an event that the fold or the database refuses, tells of it once it gave up, and goes on', async () => {
    const told: PoisonedEvent[] = [];
    await scaleMany(10);
    const byFold = await scale('ep_1', 9, POISON_REASON);
    const byDatabase = await scale('ep_2', 9, 'a NUL \0 is no text');
    const last = await scaleMany(10);
    const projector = start((poisoned) => {
      told.push(poisoned);
      return Promise.resolve();
    });
    await projector.waitFor(STREAM, last, WAIT_MS);
    expect(told.map(({ event }) => event.sequence)).toEqual([byFold, byDatabase]);
    expect(told[0]?.reason).toBe('this fold does not like the event');
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM), (reason) => reason === POISON_REASON || reason.includes('\0')));
    const verification = await projector.verify();
    expect(verification).toMatchObject({ identical: true, events: 22 });
    const kept = await connection.transaction((manager) => manager.execute<{ sequence: number }[]>('select sequence from projection.poison where name = ? order by sequence', [projection.name]));
    expect(kept.map((row) => row.sequence)).toEqual([byFold, byDatabase]);
  });

  test('tells of poison again until the telling works, and then goes on', async () => {
    let attempts = 0;
    await scale('ep_1', 1, POISON_REASON);
    const projector = start(() => {
      attempts += 1;
      return attempts < 3 ? Promise.reject(new Error('dead letters are away')) : Promise.resolve();
    });
    await projector.waitFor(STREAM, await scale('ep_1', 2), WAIT_MS);
    expect(attempts).toBe(3);
    expect(await plainRows()).toMatchObject([{ endpointId: 'ep_1', times: 1 }]);
  });

  test('verify notices a row that was changed by hand, and rebuild puts it right', async () => {
    const projector = start();
    await projector.waitFor(STREAM, await scaleMany(50), WAIT_MS);
    await connection.transaction((manager) => manager.execute(`update scaling.tally set times = times + 1 where endpoint_id = 'ep_3'`));
    const before = await projector.verify();
    expect(before.identical).toBe(false);
    const rebuilt = await projector.rebuild();
    expect(rebuilt).toMatchObject({ identical: false, rows: 7, positions: { [STREAM]: 50 } });
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
    await projector.waitFor(STREAM, await scale('ep_3', 5), WAIT_MS);
    expect(await projector.verify()).toMatchObject({ identical: true, events: 51 });
  });

  test('one verification at a time', async () => {
    const projector = start();
    await projector.waitFor(STREAM, await scaleMany(5), WAIT_MS);
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => verifyProjection(connection, log, projection)));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(outcomes.length - refused.length).toBeGreaterThanOrEqual(1);
    for (const outcome of refused) expect(outcome.reason).toBeInstanceOf(RebuildBusyError);
  });

  test('a newer version is built beside and takes over; the older one gives way', async () => {
    const older = start();
    await older.waitFor(STREAM, await scaleMany(30), WAIT_MS);
    const newer = start(undefined, tallyProjection(projection.name, 2));
    await newer.waitFor(STREAM, 30, WAIT_MS);
    await newer.waitFor(STREAM, await scale('ep_1', 3), WAIT_MS);
    await eventually(() => older.check(), (problem) => problem?.includes('version 2') === true);
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)).map((row) => ({ ...row, sum: row.sum * 2 })));
  });

  test('reads the log again when the database was set back', async () => {
    const projector = start();
    await projector.waitFor(STREAM, await scaleMany(30), WAIT_MS);
    await connection.transaction(async (manager) => {
      await manager.execute('update projection.processor set last_seq = 0 where name = ?', [projection.name]);
      await manager.execute('delete from scaling.tally');
    });
    await scale('ep_0', 1);
    await eventually(plainRows, (found) => found.reduce((sum, row) => sum + row.times, 0) === 31);
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
  });

  test('starts while the database is down, survives its death, and neither loses nor doubles', async () => {
    await servers.kill('postgres');
    const projector = start();
    await scaleMany(50);
    expect(await connection.probe()).toContain('PostgreSQL does not answer');
    await servers.restart('postgres');
    await projector.waitFor(STREAM, 50, WAIT_MS);
    const writing = scaleMany(3_000);
    await servers.kill('postgres');
    await servers.restart('postgres');
    await projector.waitFor(STREAM, await writing, WAIT_MS);
    expect(await plainRows()).toEqual(expectedTally(log.all(STREAM)));
    expect((await projector.verify()).identical).toBe(true);
    expect(await connection.probe()).toBeUndefined();
  }, 90_000);

  test('property: byte-identical after crashes at any point, with any number of projectors', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('events' as const), count: fc.integer({ min: 1, max: 700 }), hasPoison: fc.boolean() }),
      fc.record({ kind: fc.constant('start' as const) }),
      fc.record({ kind: fc.constant('close' as const) }),
      fc.record({ kind: fc.constant('cut-connections' as const) }),
      fc.record({ kind: fc.constant('pause' as const), waitsFor: fc.integer({ min: 0, max: 300 }) }),
    );
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      log = new MemoryEventLog();
      runs += 1;
      projection = tallyProjection(`tally-${runs}`);
      await connection.transaction((manager) => manager.execute('drop table if exists scaling.tally'));
      for (const current of steps) {
        if (current.kind === 'events') {
          await scaleMany(current.count);
          if (current.hasPoison) await scale('ep_1', 1, POISON_REASON);
        } else if (current.kind === 'start' && projectors.length < 3) start();
        else if (current.kind === 'close') await projectors.pop()?.close();
        else if (current.kind === 'cut-connections') await cutConnections();
        else if (current.kind === 'pause' && projectors[0] !== undefined) await projectors[0].waitFor(STREAM, Math.min(current.waitsFor, log.all(STREAM).length), WAIT_MS);
      }
      const last = start();
      await last.waitFor(STREAM, log.all(STREAM).length, WAIT_MS);
      const verification = await eventually(() => last.verify().catch(() => undefined), (found) => found !== undefined);
      expect(verification?.identical).toBe(true);
      expect(await plainRows()).toEqual(expectedTally(log.all(STREAM), (reason) => reason === POISON_REASON));
      await Promise.all(projectors.map((projector) => projector.close()));
      projectors = [];
    }), { numRuns: 8 });
  }, 180_000);
});

/** Ends every other connection on the server's side, as a failing network would. */
async function cutConnections(): Promise<void> {
  await connection.transaction((manager) => manager.execute('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()')).catch(() => undefined);
}

import type { EntityManager } from '@mikro-orm/postgresql';
import { BOOKKEEPING_SCHEMA, migrations } from './migrations.js';

/** Any number, the same in every process: whoever holds this lock changes the structure of the database. */
const STRUCTURE_LOCK = 727_001;

/** Lets one process at a time change the structure of the database, until its transaction ends. */
export async function lockStructure(manager: EntityManager): Promise<void> {
  await manager.execute('select pg_advisory_xact_lock(?)', [STRUCTURE_LOCK]);
}

/** Brings the bookkeeping tables up to date. Call it in a transaction that holds {@link lockStructure}. */
export async function runMigrations(manager: EntityManager): Promise<void> {
  await manager.execute(`create schema if not exists ${BOOKKEEPING_SCHEMA}`);
  await manager.execute(`create table if not exists ${BOOKKEEPING_SCHEMA}.migration (id integer primary key, name text not null)`);
  const done = await manager.execute<{ id: number }[]>(`select id from ${BOOKKEEPING_SCHEMA}.migration`);
  const doneIds = new Set(done.map((row) => row.id));
  for (const migration of migrations) {
    if (doneIds.has(migration.id)) continue;
    for (const statement of migration.statements) await manager.execute(statement);
    await manager.execute(`insert into ${BOOKKEEPING_SCHEMA}.migration (id, name) values (?, ?)`, [migration.id, migration.name]);
  }
}

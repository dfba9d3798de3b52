import { MikroORM, type EntityManager } from '@mikro-orm/postgresql';
import { tableNameOf, type TableProjection } from './table-projection.js';

/** Drops what is there and creates the tables of a projection, empty, in `schema`. */
export async function recreateTables(manager: EntityManager, projection: TableProjection, schema: string): Promise<void> {
  await manager.execute(`create schema if not exists "${schema}"`);
  await dropTables(manager, projection, schema);
  await manager.execute(await createTablesSql(projection, schema));
}

export async function dropTables(manager: EntityManager, projection: TableProjection, schema: string): Promise<void> {
  for (const fold of projection.tables) await manager.execute(`drop table if exists "${schema}"."${tableNameOf(fold)}"`);
}

/** The definition of the tables is the only source of their structure, so live and shadow tables cannot differ. */
async function createTablesSql(projection: TableProjection, schema: string): Promise<string> {
  const offline = await MikroORM.init({
    dbName: 'offline',
    entities: projection.tables.map((fold) => fold.table),
    ensureDatabase: false,
    debug: false,
  });
  const sql = await offline.schema.getCreateSchemaSQL({ schema, includeWildcardSchema: true });
  await offline.close(true);
  return sql;
}

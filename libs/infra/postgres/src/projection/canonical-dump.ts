import { createHash } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { keyColumnOf, tableNameOf, type TableFold, type TableProjection } from './table-projection.js';

/** Rows read at once. */
const DUMP_PAGE_ROWS = 2_000;

export interface DumpDigest {
  readonly rows: number;
  /** sha256, hexadecimal. */
  readonly digest: string;
}

/**
 * Digest of everything a projection holds: table by table, each row as the JSON that PostgreSQL writes for it (whose order of
 * keys is fixed), in the byte order of the primary key. The name of the schema is no part of it.
 */
export async function digestTables(manager: EntityManager, projection: TableProjection, schema: string): Promise<DumpDigest> {
  const hash = createHash('sha256');
  let rows = 0;
  for (const fold of projection.tables) {
    hash.update(`${tableNameOf(fold)}\n`);
    for await (const page of pagesOf(manager, fold, schema)) {
      for (const row of page) hash.update(`${row.document}\n`);
      rows += page.length;
    }
  }
  return { rows, digest: hash.digest('hex') };
}

interface DumpedRow {
  readonly key: string;
  readonly document: string;
}

async function* pagesOf(manager: EntityManager, fold: TableFold, schema: string): AsyncGenerator<readonly DumpedRow[]> {
  const column = keyColumnOf(manager, fold);
  const key = `"${column}" collate "C"`;
  const select = `select "${column}" as key, to_jsonb(t)::text as document from "${schema}"."${tableNameOf(fold)}" t`;
  let after: string | undefined;
  for (;;) {
    const page: DumpedRow[] = after === undefined
      ? await manager.execute(`${select} order by ${key} limit ${DUMP_PAGE_ROWS}`)
      : await manager.execute(`${select} where ${key} > ? order by ${key} limit ${DUMP_PAGE_ROWS}`, [after]);
    if (page.length > 0) yield page;
    if (page.length < DUMP_PAGE_ROWS) return;
    after = page.at(-1)?.key;
  }
}

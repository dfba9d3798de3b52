import type { EntityManager } from '@mikro-orm/postgresql';
import { asCatalogueEvent } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import type { TableFold, TableProjection, TableRow } from './table-projection.js';

/** An event that a projection cannot take. */
export class FoldFailure extends Error {
  override readonly name = 'FoldFailure';
  constructor(readonly sequence: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** Applies events in order to the tables in `schema`, inside the caller's transaction. Throws {@link FoldFailure} or what the database says. */
export async function foldBatch(manager: EntityManager, projection: TableProjection, schema: string, events: readonly RecordedEvent[]): Promise<void> {
  for (const fold of projection.tables) await foldIntoTable(manager, fold, schema, events);
}

async function foldIntoTable(manager: EntityManager, fold: TableFold, schema: string, events: readonly RecordedEvent[]): Promise<void> {
  const touched = events.flatMap((event) => {
    const key = attempt(event, () => fold.keyOf(asCatalogueEvent(event)));
    return key === undefined ? [] : [{ event, key }];
  });
  if (touched.length === 0) return;
  const before = await readRows(manager, fold, schema, [...new Set(touched.map(({ key }) => key))]);
  const after = new Map(before);
  for (const { event, key } of touched) {
    const row = attempt(event, () => storable(fold.fold(after.get(key), asCatalogueEvent(event))));
    if (row === undefined) after.delete(key);
    else after.set(key, row);
  }
  const changed = [...after].filter(([key, row]) => before.get(key) !== row).map(([, row]) => row);
  const gone = [...before.keys()].filter((key) => !after.has(key));
  if (changed.length > 0) await manager.createQueryBuilder(fold.table).insert(changed).onConflict(fold.key).merge().withSchema(schema).execute('run', false);
  if (gone.length > 0) await manager.createQueryBuilder(fold.table).delete({ [fold.key]: { $in: gone } }).withSchema(schema).execute('run', false);
}

async function readRows(manager: EntityManager, fold: TableFold, schema: string, keys: readonly string[]): Promise<Map<string, TableRow>> {
  const rows: TableRow[] = await manager.createQueryBuilder(fold.table).withSchema(schema).select('*').where({ [fold.key]: { $in: keys } }).execute('all');
  return new Map(rows.map((row) => [String(row[fold.key]), row]));
}

/**
 * Checks what PostgreSQL cannot keep for each event's own row, since a later event of the batch may write over it:
 * what is poison must not depend on where a batch ends.
 */
function storable(row: TableRow | undefined): TableRow | undefined {
  if (row !== undefined) assertStorable(row, '');
  return row;
}

function assertStorable(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (value.includes('\0') || !value.isWellFormed()) throw new RangeError(`${path} holds a NUL or half a character, which PostgreSQL cannot store`);
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError(`${path} is not a finite number`);
  } else if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new RangeError(`${path} is not a time`);
  } else if (value === undefined) {
    throw new TypeError(`${path} is undefined`);
  } else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value)) {
      // A document may leave a field out; a column may not.
      if (part === undefined && path !== '') continue;
      assertStorable(key, `a key of ${path || 'the row'}`);
      assertStorable(part, path === '' ? key : `${path}.${key}`);
    }
  }
}

function attempt<Result>(event: RecordedEvent, call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    throw new FoldFailure(event.sequence, error);
  }
}

import type { EntityManager, EntitySchema } from '@mikro-orm/postgresql';
import type { CatalogueEvent, StreamName } from '@penstock/contract-events';
import { assert, type RecordedEvent } from '@penstock/kernel';

/** An event as a projection gets it: switch on `type` and `data` is typed. */
export type ProjectedEvent = RecordedEvent & CatalogueEvent;

/** Columns by property name. Times are `Date`, whole numbers beyond 32 bits `number`, documents plain JSON. */
export type TableRow = Readonly<Record<string, unknown>>;

/**
 * How one table follows from events: an event touches the rows that it names, and a new row depends on nothing but the
 * old row and the event. So a batch costs one read and one write, and a rebuild gives the same bytes.
 */
export interface TableFold {
  readonly table: EntitySchema<TableRow>;
  /** Property of the primary key, a text. */
  readonly key: string;
  /** Keys of the rows that the event touches, each once; none when it is none of this table's. */
  keysOf(event: ProjectedEvent): readonly string[];
  /** Pure; called once for each key. The same object means no change, undefined that there is no such row. What it throws makes the event poison. */
  fold(row: TableRow | undefined, event: ProjectedEvent, key: string): TableRow | undefined;
}

/** PostgreSQL schemas, one for each owning service. */
export type OwnerSchema = 'registry' | 'fleet' | 'scaling' | 'batch' | 'metering';

/** A view in the database, kept by a projector. */
export interface TableProjection {
  readonly name: string;
  /** A higher version is built anew from the first event, beside the old one, and then takes its place. */
  readonly version: number;
  readonly schema: OwnerSchema;
  readonly streams: readonly StreamName[];
  readonly tables: readonly TableFold[];
}

export interface TableFoldDefinition<Row extends object> {
  readonly table: EntitySchema<Row>;
  readonly key: keyof Row & string;
  fold(row: Row | undefined, event: ProjectedEvent, key: string): Row | undefined;
}

/** Where an event touches at most one row; `keyOf` is undefined when it touches none. */
interface SingleRowFold<Row extends object> extends TableFoldDefinition<Row> {
  keyOf(event: ProjectedEvent): string | undefined;
}

interface ManyRowsFold<Row extends object> extends TableFoldDefinition<Row> {
  keysOf(event: ProjectedEvent): readonly string[];
}

/** Gives a fold with its own type of row to a projection, which treats all rows alike. */
export function foldTable<Row extends object>(definition: SingleRowFold<Row> | ManyRowsFold<Row>): TableFold {
  const keysOf = 'keysOf' in definition ? definition.keysOf : (event: ProjectedEvent): readonly string[] => {
    const key = definition.keyOf(event);
    return key === undefined ? [] : [key];
  };
  return { ...definition, keysOf } as unknown as TableFold;
}

/** The name of the table without its schema. */
export function tableNameOf(fold: TableFold): string {
  return fold.table.meta.tableName;
}

/** The column of the primary key, as the connection's naming has it. */
export function keyColumnOf(manager: EntityManager, fold: TableFold): string {
  const column = manager.getMetadata(fold.table).properties[fold.key]?.fieldNames[0];
  assert(column !== undefined, `table ${tableNameOf(fold)} has no column for its key ${fold.key}`);
  return column;
}

/** Each property with its column. */
export function columnsOf(manager: EntityManager, fold: TableFold): readonly { readonly property: string; readonly column: string }[] {
  return manager.getMetadata(fold.table).props.flatMap((property) => property.fieldNames.map((column) => ({ property: property.name, column })));
}

/** Where a projection is built beside the live one. */
export function shadowSchemaOf(projection: TableProjection): string {
  return `${projection.schema}_shadow`;
}

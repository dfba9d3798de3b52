/** One step of the bookkeeping tables. A step that was released is never edited: a change is a new step. */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** Where the projector keeps its books. The tables of a projection are made from its definition and carry its version instead. */
export const BOOKKEEPING_SCHEMA = 'projection';

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: 'checkpoints and poison',
    statements: [
      `create table ${BOOKKEEPING_SCHEMA}.processor (
        name text not null,
        stream text not null,
        version integer not null,
        last_seq bigint not null check (last_seq >= 0),
        primary key (name, stream)
      )`,
      `create table ${BOOKKEEPING_SCHEMA}.poison (
        name text not null,
        stream text not null,
        sequence bigint not null,
        event_id text not null,
        event_type text not null,
        reason text not null,
        primary key (name, stream, sequence)
      )`,
    ],
  },
];

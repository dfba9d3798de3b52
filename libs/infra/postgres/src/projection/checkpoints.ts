import type { EntityManager } from '@mikro-orm/postgresql';
import type { RecordedEvent } from '@penstock/kernel';
import { BOOKKEEPING_SCHEMA } from '../migrations/migrations.js';
import type { TableProjection } from './table-projection.js';

export interface Checkpoint {
  readonly version: number;
  readonly lastSequence: number;
}

const PROCESSOR = `${BOOKKEEPING_SCHEMA}.processor`;

/** Checkpoints of a projection by stream; empty when it was never built. `isLocked` keeps them from moving until the transaction ends. */
export async function readCheckpoints(manager: EntityManager, name: string, options: { readonly isLocked?: boolean } = {}): Promise<ReadonlyMap<string, Checkpoint>> {
  const rows = await manager.execute<{ stream: string; version: number; last_seq: number }[]>(
    `select stream, version, last_seq from ${PROCESSOR} where name = ? order by stream${options.isLocked === true ? ' for update' : ''}`,
    [name],
  );
  return new Map(rows.map((row) => [row.stream, { version: row.version, lastSequence: row.last_seq }]));
}

/**
 * Moves a checkpoint from where this projector believes it is. False when it stands elsewhere: somebody else applied events,
 * or another version took over. The row stays locked until the transaction ends, so two projectors never apply at once.
 */
export async function moveCheckpoint(manager: EntityManager, projection: TableProjection, step: { readonly stream: string; readonly from: number; readonly to: number }): Promise<boolean> {
  const { affectedRows } = await manager.execute<{ affectedRows: number; insertId: number; row?: Record<string, unknown> }>(
    `update ${PROCESSOR} set last_seq = ? where name = ? and stream = ? and version = ? and last_seq = ?`,
    [step.to, projection.name, step.stream, projection.version, step.from],
    'run',
  );
  return affectedRows === 1;
}

/** Puts the checkpoints of a projection to these positions, whatever they were. */
export async function resetCheckpoints(manager: EntityManager, projection: TableProjection, positions: ReadonlyMap<string, number>): Promise<void> {
  await manager.execute(`delete from ${PROCESSOR} where name = ?`, [projection.name]);
  for (const [stream, position] of positions) {
    await manager.execute(`insert into ${PROCESSOR} (name, stream, version, last_seq) values (?, ?, ?, ?)`, [projection.name, stream, projection.version, position]);
  }
}

/** Text that PostgreSQL takes: it knows no NUL. */
const printable = (text: string): string => text.replaceAll('\0', '�').slice(0, 2_000);

export async function recordPoison(manager: EntityManager, projection: TableProjection, event: RecordedEvent, reason: string): Promise<void> {
  await manager.execute(
    `insert into ${BOOKKEEPING_SCHEMA}.poison (name, stream, sequence, event_id, event_type, reason) values (?, ?, ?, ?, ?, ?)
     on conflict (name, stream, sequence) do update set reason = excluded.reason`,
    [projection.name, event.stream, event.sequence, printable(event.id), printable(event.type), printable(reason)],
  );
}

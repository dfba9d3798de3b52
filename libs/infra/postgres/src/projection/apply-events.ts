import type { EntityManager } from '@mikro-orm/postgresql';
import type { RecordedEvent } from '@penstock/kernel';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { moveCheckpoint, readCheckpoints, recordPoison } from './checkpoints.js';
import { foldBatch } from './fold-batch.js';
import type { TableProjection } from './table-projection.js';

export type ApplyOutcome =
  | { readonly kind: 'applied' }
  /** The checkpoint stands at `lastSequence`, not where the caller believed; nothing was written. */
  | { readonly kind: 'moved'; readonly lastSequence: number }
  /** Another version of the projection owns the tables; null when nobody does. */
  | { readonly kind: 'replaced'; readonly version: number | null };

/** Rolls a transaction back without being a failure. */
class CheckpointElsewhere extends Error {
  override readonly name = 'CheckpointElsewhere';
  constructor(readonly outcome: ApplyOutcome) {
    super('the checkpoint stands elsewhere');
  }
}

/** From where to where a checkpoint moves. */
export interface Step {
  readonly stream: string;
  readonly from: number;
  readonly to: number;
}

/** Applies the events of one step and moves the checkpoint, both or neither. */
export function applyEvents(connection: PostgresConnection, projection: TableProjection, step: Step, events: readonly RecordedEvent[]): Promise<ApplyOutcome> {
  return withCheckpoint(connection, projection, step, (manager) => foldBatch(manager, projection, projection.schema, events));
}

/** Moves the checkpoint past an event that cannot be applied, and keeps the reason. */
export function skipPoison(connection: PostgresConnection, projection: TableProjection, step: Step, event: RecordedEvent, reason: string): Promise<ApplyOutcome> {
  return withCheckpoint(connection, projection, step, (manager) => recordPoison(manager, projection, event, reason));
}

async function withCheckpoint(connection: PostgresConnection, projection: TableProjection, step: Step, write: (manager: EntityManager) => Promise<void>): Promise<ApplyOutcome> {
  try {
    await connection.transaction(async (manager) => {
      // The checkpoint comes first: whoever is late waits here, before it did any work, and then finds that it lost.
      if (!(await moveCheckpoint(manager, projection, step))) throw new CheckpointElsewhere(await whereabouts(manager, projection, step.stream));
      await write(manager);
    });
    return { kind: 'applied' };
  } catch (error) {
    if (error instanceof CheckpointElsewhere) return error.outcome;
    throw error;
  }
}

async function whereabouts(manager: EntityManager, projection: TableProjection, stream: string): Promise<ApplyOutcome> {
  const checkpoint = (await readCheckpoints(manager, projection.name)).get(stream);
  if (checkpoint === undefined) return { kind: 'replaced', version: null };
  if (checkpoint.version !== projection.version) return { kind: 'replaced', version: checkpoint.version };
  return { kind: 'moved', lastSequence: checkpoint.lastSequence };
}

import type { EntityManager } from '@mikro-orm/postgresql';
import type { StreamName } from '@penstock/contract-events';
import type { EventLog, RecordedEvent } from '@penstock/kernel';
import { classifyFailure } from '../connection/classify-failure.js';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { digestTables, type DumpDigest } from './canonical-dump.js';
import { resetCheckpoints } from './checkpoints.js';
import { dropTables, recreateTables } from './create-tables.js';
import { foldBatch, FoldFailure } from './fold-batch.js';
import { shadowSchemaOf, tableNameOf, type TableProjection } from './table-projection.js';

/** Events of one transaction of a rebuild. */
const REBUILD_BATCH_EVENTS = 2_000;

/** A projection that is built anew beside the live one, from the first event. */
export class ShadowBuild {
  private readonly schema: string;
  private readonly applied = new Map<StreamName, number>();
  /** Events read so far, poison included. */
  events = 0;

  constructor(private readonly connection: PostgresConnection, private readonly log: EventLog, private readonly projection: TableProjection) {
    this.schema = shadowSchemaOf(projection);
    for (const stream of projection.streams) this.applied.set(stream, 0);
  }

  positions(): ReadonlyMap<StreamName, number> {
    return this.applied;
  }

  /** Creates the tables, empty; what an earlier attempt left is dropped. */
  async create(): Promise<void> {
    await this.connection.transaction((manager) => recreateTables(manager, this.projection, this.schema));
  }

  async drop(): Promise<void> {
    await this.connection.transaction((manager) => dropTables(manager, this.projection, this.schema));
  }

  /** Applies what is missing up to these positions, inclusive. */
  async fillTo(targets: ReadonlyMap<StreamName, number>): Promise<void> {
    for (const [stream, target] of targets) {
      const from = (this.applied.get(stream) ?? 0) + 1;
      if (target < from) continue;
      for await (const events of this.log.read(stream, { fromSequence: from, toSequence: target, batchSize: REBUILD_BATCH_EVENTS })) {
        await this.apply(events);
        this.events += events.length;
      }
      this.applied.set(stream, target);
    }
  }

  digest(manager: EntityManager): Promise<DumpDigest> {
    return digestTables(manager, this.projection, this.schema);
  }

  /** Puts the shadow in the place of the live tables, with its positions as checkpoints. The caller's transaction holds the checkpoints. */
  async swapIn(manager: EntityManager): Promise<void> {
    await manager.execute(`create schema if not exists "${this.projection.schema}"`);
    await dropTables(manager, this.projection, this.projection.schema);
    for (const fold of this.projection.tables) {
      await manager.execute(`alter table "${this.schema}"."${tableNameOf(fold)}" set schema "${this.projection.schema}"`);
    }
    await resetCheckpoints(manager, this.projection, this.applied);
  }

  /** Poison is left out as the live projector leaves it out: found by halving down to the single event. */
  private async apply(events: readonly RecordedEvent[]): Promise<void> {
    if (events.length === 0) return;
    try {
      await this.connection.transaction((manager) => foldBatch(manager, this.projection, this.schema, events));
    } catch (error) {
      if (!(error instanceof FoldFailure) && classifyFailure(error) !== 'data') throw error;
      if (events.length === 1) return;
      const half = Math.ceil(events.length / 2);
      await this.apply(events.slice(0, half));
      await this.apply(events.slice(half));
    }
  }
}

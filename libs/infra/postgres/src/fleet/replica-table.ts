import { EntitySchema } from '@mikro-orm/postgresql';
import { evolveReplica, type ReplicaEvent, type ReplicaFacts } from '@penstock/domain-lifecycle';
import { foldTable, type ProjectedEvent } from '../projection/table-projection.js';
import { instantColumn, keyText, wholeNumber } from '../table-columns.js';

export interface ReplicaRow {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly nodeId: string;
  readonly phase: ReplicaFacts['phase'];
  /** Position in the stream of its placement. */
  readonly sequence: number;
  readonly placedAt: Date;
  readonly phaseSince: Date;
  readonly facts: ReplicaFacts;
}

export const replicaTable = new EntitySchema<ReplicaRow>({
  name: 'ReplicaRow',
  tableName: 'replicas',
  schema: '*',
  properties: {
    replicaId: { type: 'text', ...keyText, primary: true },
    endpointId: { type: 'text' },
    nodeId: { type: 'text' },
    phase: { type: 'text' },
    sequence: wholeNumber,
    placedAt: { type: 'datetime', ...instantColumn },
    phaseSince: { type: 'datetime', ...instantColumn },
    facts: { type: 'json' },
  },
  indexes: [{ name: 'replicas_by_sequence', properties: ['sequence'] }],
});

const REPLICA_EVENTS: ReadonlySet<string> = new Set<ReplicaEvent['type']>([
  'replica.placed.v2', 'replica.advanced.v1', 'replica.ready.v1', 'replica.drain-started.v1', 'replica.stopped.v1', 'replica.failed.v1',
]);

function isReplicaEvent(event: ProjectedEvent): event is ProjectedEvent & ReplicaEvent {
  return REPLICA_EVENTS.has(event.type);
}

export const replicaFold = foldTable<ReplicaRow>({
  table: replicaTable,
  key: 'replicaId',
  keyOf: (event) => (isReplicaEvent(event) ? event.data.replicaId : undefined),
  fold(row, event) {
    if (!isReplicaEvent(event)) return row;
    const facts = evolveReplica<ReplicaFacts>(row?.facts ?? null, event, (placed) => placed);
    if (facts === null || facts === row?.facts) return row;
    const at = new Date(event.time);
    return {
      replicaId: facts.replicaId,
      endpointId: facts.endpointId,
      nodeId: facts.nodeId,
      phase: facts.phase,
      sequence: row?.sequence ?? event.sequence,
      placedAt: row?.placedAt ?? at,
      phaseSince: row?.phase === facts.phase ? row.phaseSince : at,
      facts,
    };
  },
});

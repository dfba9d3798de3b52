import { EntitySchema } from '@mikro-orm/postgresql';
import type { NodeJoinedV2 } from '@penstock/contract-events';
import { evolveOperations, NO_OPERATIONS, type NodeEvent, type NodeOperations } from '@penstock/domain-lifecycle';
import { foldTable, type ProjectedEvent } from '../projection/table-projection.js';
import { instantColumn, keyText } from '../table-columns.js';

export interface NodeRow {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: 'up' | 'lost';
  readonly statusReason: string | null;
  readonly joinedAt: Date;
  readonly joined: NodeJoinedV2;
  readonly operations: NodeOperations;
}

export const nodeTable = new EntitySchema<NodeRow>({
  name: 'NodeRow',
  tableName: 'nodes',
  schema: '*',
  properties: {
    nodeId: { type: 'text', ...keyText, primary: true },
    hostname: { type: 'text' },
    status: { type: 'text' },
    statusReason: { type: 'text', nullable: true },
    joinedAt: { type: 'datetime', ...instantColumn },
    joined: { type: 'json' },
    operations: { type: 'json' },
  },
});

const NODE_EVENTS: ReadonlySet<string> = new Set<NodeEvent['type']>([
  'node.joined.v2', 'node.lost.v1', 'node.cordoned.v1', 'node.uncordoned.v1', 'node.drain-requested.v1', 'node.reclaim-announced.v1',
]);

function isNodeEvent(event: ProjectedEvent): event is ProjectedEvent & NodeEvent {
  return NODE_EVENTS.has(event.type);
}

export const nodeFold = foldTable<NodeRow>({
  table: nodeTable,
  key: 'nodeId',
  keyOf: (event) => (isNodeEvent(event) ? event.data.nodeId : undefined),
  fold(row, event) {
    if (!isNodeEvent(event)) return row;
    if (event.type === 'node.joined.v2') {
      return { nodeId: event.data.nodeId, hostname: event.data.hostname, status: 'up', statusReason: null, joinedAt: new Date(event.time), joined: event.data, operations: row?.operations ?? NO_OPERATIONS };
    }
    if (row === undefined) return row;
    const operations = evolveOperations(row.operations, event);
    if (event.type !== 'node.lost.v1' || row.status === 'lost') return { ...row, operations };
    return { ...row, operations, status: 'lost', statusReason: event.data.reason };
  },
});

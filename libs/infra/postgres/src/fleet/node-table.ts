import { EntitySchema } from '@mikro-orm/postgresql';
import type { NodeJoinedV1 } from '@penstock/contract-events';
import { foldTable } from '../projection/table-projection.js';
import { instantColumn, keyText } from '../table-columns.js';

export interface NodeRow {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: 'up' | 'lost';
  readonly statusReason: string | null;
  readonly joinedAt: Date;
  readonly joined: NodeJoinedV1;
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
  },
});

export const nodeFold = foldTable<NodeRow>({
  table: nodeTable,
  key: 'nodeId',
  keyOf: (event) => (event.type === 'node.joined.v1' || event.type === 'node.lost.v1' ? event.data.nodeId : undefined),
  fold(row, event) {
    if (event.type === 'node.joined.v1') {
      return { nodeId: event.data.nodeId, hostname: event.data.hostname, status: 'up', statusReason: null, joinedAt: new Date(event.time), joined: event.data };
    }
    if (event.type !== 'node.lost.v1' || row === undefined || row.status === 'lost') return row;
    return { ...row, status: 'lost', statusReason: event.data.reason };
  },
});

import type { NodeView, ReplicaView } from '@penstock/contract-commands';
import { REPLICAS_LISTED_MAX, toReplicaView, type FleetQueries } from '@penstock/domain-lifecycle';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { nodeTable, type NodeRow } from './node-table.js';
import { replicaTable, type ReplicaRow } from './replica-table.js';

const options = { schema: 'fleet', disableIdentityMap: true } as const;

/** The fleet from the tables that the projection `fleet` keeps. */
export class PostgresFleetQueries implements FleetQueries {
  constructor(private readonly connection: PostgresConnection) {}

  async nodes(): Promise<readonly NodeView[]> {
    const rows = await this.connection.query((manager) => manager.find(nodeTable, {}, { ...options, orderBy: { nodeId: 'asc' } }));
    return rows.map(toNodeView);
  }

  async replicas(filter: { readonly includeEnded: boolean }): Promise<readonly ReplicaView[]> {
    const where = filter.includeEnded ? {} : { phase: { $nin: ['stopped' as const, 'failed' as const] } };
    const rows = await this.connection.query((manager) => manager.find(replicaTable, where, { ...options, orderBy: { sequence: 'desc' }, limit: REPLICAS_LISTED_MAX }));
    return rows.map(viewOfRow);
  }
}

function toNodeView(row: NodeRow): NodeView {
  return { ...row.joined, ...row.operations, status: row.status, statusReason: row.statusReason, joinedAt: row.joinedAt.toISOString() };
}

function viewOfRow({ facts, placedAt, phaseSince }: ReplicaRow): ReplicaView {
  return toReplicaView(facts, phaseSince.getTime(), placedAt.getTime());
}

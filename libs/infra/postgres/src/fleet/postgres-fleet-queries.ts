import type { NodeView, ReplicaView } from '@penstock/contract-commands';
import { REPLICAS_LISTED_MAX, type FleetQueries } from '@penstock/domain-lifecycle';
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
    return rows.map(toReplicaView);
  }
}

function toNodeView(row: NodeRow): NodeView {
  return { ...row.joined, status: row.status, statusReason: row.statusReason, joinedAt: row.joinedAt.toISOString() };
}

function toReplicaView({ facts, placedAt, phaseSince }: ReplicaRow): ReplicaView {
  const { replicaId, endpointId, modelVersionId, nodeId, acceleratorIds, reservedBytes, phase, url, engine, slots, placementReason, reason } = facts;
  return {
    replicaId, endpointId, modelVersionId, nodeId, acceleratorIds: [...acceleratorIds], reservedBytes, phase, url, engine, slots, placementReason, reason,
    phaseSince: phaseSince.toISOString(),
    createdAt: placedAt.toISOString(),
  };
}

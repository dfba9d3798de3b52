import type { ScalingDecisionFilter, ScalingDecisionView, ScalingQueries } from '@penstock/domain-scaling';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { decisionTable } from './decision-table.js';

/** Scaling decisions from the table that the projection `scaling` keeps. */
export class PostgresScalingQueries implements ScalingQueries {
  constructor(private readonly connection: PostgresConnection) {}

  async decisions(filter: ScalingDecisionFilter): Promise<readonly ScalingDecisionView[]> {
    const where = filter.endpointId === undefined ? {} : { endpointId: filter.endpointId };
    const rows = await this.connection.query((manager) =>
      manager.find(decisionTable, where, { schema: 'scaling', disableIdentityMap: true, orderBy: { sequence: 'desc' }, limit: filter.limit }),
    );
    return rows.map((row) => ({ ...row.decision, decidedAt: row.decidedAt.toISOString() }));
  }
}

import type { UsageLedgerQueries, UsageLedgerTotals } from '@penstock/domain-usage';
import type { PostgresConnection } from '../connection/connect-postgres.js';

const TOTALS = `select count(*) as requests, coalesce(sum(prompt_tokens), 0)::bigint as prompt, coalesce(sum(completion_tokens), 0)::bigint as completion,
  coalesce(max(sequence), 0)::bigint as last from metering.usage_ledger`;

/** Sums from the table that the projection `metering` keeps. */
export class PostgresUsageLedgerQueries implements UsageLedgerQueries {
  constructor(private readonly connection: PostgresConnection) {}

  async totals(organisationId?: string): Promise<UsageLedgerTotals> {
    const [row] = await this.connection.query((manager) =>
      organisationId === undefined
        ? manager.execute<TotalsRow[]>(TOTALS)
        : manager.execute<TotalsRow[]>(`${TOTALS} where organisation_id = ?`, [organisationId]),
    );
    return { requests: row?.requests ?? 0, promptTokens: row?.prompt ?? 0, completionTokens: row?.completion ?? 0, lastSequence: row?.last ?? 0 };
  }
}

interface TotalsRow {
  readonly requests: number;
  readonly prompt: number;
  readonly completion: number;
  readonly last: number;
}

/** Sums over the ledger, each request once. */
export interface UsageLedgerTotals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Stream sequence of the newest record in it; 0 while it is empty. */
  readonly lastSequence: number;
}

/** The usage ledger out of a database: one row for each request. Rejects when the database does not answer. */
export interface UsageLedgerQueries {
  /** Over one organisation, or over all. */
  totals(organisationId?: string): Promise<UsageLedgerTotals>;
}

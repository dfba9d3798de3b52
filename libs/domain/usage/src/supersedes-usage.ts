import type { UsageRecord } from '@penstock/contract-events';

/**
 * Whether a later record of a request takes the place of an earlier one. The first record counts, so that an event told
 * twice changes nothing; but a completed one replaces one that was not: a batch line that was cut off by a crash is run
 * again under the same request id, and what the customer got is the answer of the second run.
 */
export function supersedesUsage(later: Pick<UsageRecord, 'status'>, earlier: { readonly status: string }): boolean {
  return later.status === 'completed' && earlier.status !== 'completed';
}

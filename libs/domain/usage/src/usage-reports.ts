import type { getUsageTotals, queryUsage, usageBucket } from '@penstock/contract-commands';
import type { UsageRecord } from '@penstock/contract-events';
import type { z } from 'zod';
import type { BucketPlan } from './usage-buckets.js';

export type UsageQuery = z.output<typeof queryUsage.request>;
export type UsageBucket = z.infer<typeof usageBucket>;
export type StoredUsageTotals = z.infer<typeof getUsageTotals.reply>;

/** Buckets of one page, and the token of the next page where there is one. */
export interface UsageBuckets {
  readonly buckets: UsageBucket[];
  readonly nextPage: string | null;
}

/** Sums over the requests of one organisation, project, key and model, each request counted once. */
export interface UsageSum {
  readonly organisationId: string;
  readonly projectId: string;
  readonly keyId: string;
  readonly modelName: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

/** Questions to the store of usage. All throw `UsageStoreUnavailableError` when it cannot be reached. */
export interface UsageReports {
  /**
   * One page, planned by `planBuckets(query)`. Buckets start at whole minutes, hours or days in UTC; one without requests has no results.
   * Where the results are too many for one answer, the page is cut short and `nextPage` goes on behind the cut.
   */
  buckets(query: UsageQuery, plan: BucketPlan): Promise<UsageBuckets>;
  /** One request, of one organisation or of any; undefined when it is not stored. */
  request(requestId: string, organisationId?: string): Promise<UsageRecord | undefined>;
  /** Over everything stored, of one organisation or of all. */
  totals(organisationId?: string): Promise<StoredUsageTotals>;
  /** The highest sequence of `EV_USAGE` that is stored; 0 when nothing is. Lower ones may still be on their way. */
  lastSequence(): Promise<number>;
  /** What is stored between two sequences, both included, in the order of organisation, project, key, model. */
  sums(fromSequence: number, toSequence: number): Promise<readonly UsageSum[]>;
}

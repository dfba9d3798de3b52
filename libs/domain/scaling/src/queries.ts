import type { CommandContract, listScalingDecisions } from '@penstock/contract-commands';
import type { z } from 'zod';

type Reply = typeof listScalingDecisions extends CommandContract<infer _Request, infer Value> ? z.output<Value> : never;

/** One decision of the autoscaler as lists show it. */
export type ScalingDecisionView = Reply['decisions'][number];

export interface ScalingDecisionFilter {
  readonly endpointId?: string | undefined;
  readonly limit: number;
}

/** Scaling decisions out of a database. Rejects when the database does not answer. */
export interface ScalingQueries {
  /** Newest first. */
  decisions(filter: ScalingDecisionFilter): Promise<readonly ScalingDecisionView[]>;
}

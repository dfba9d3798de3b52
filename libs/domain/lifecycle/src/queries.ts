import type { NodeView, ReplicaView } from '@penstock/contract-commands';

/** The fleet out of a database. Rejects when the database does not answer. */
export interface FleetQueries {
  /** Every node, by id. */
  nodes(): Promise<readonly NodeView[]>;
  /** Replicas, newest first; stopped and failed ones only when asked for, at most {@link REPLICAS_LISTED_MAX}. */
  replicas(filter: { readonly includeEnded: boolean }): Promise<readonly ReplicaView[]>;
}

export const REPLICAS_LISTED_MAX = 10_000;

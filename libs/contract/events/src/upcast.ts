import type { ApiKeyCreatedV1 } from './api-key-created.v1.js';
import type { ApiKeyCreatedV2 } from './api-key-created.v2.js';
import type { BatchJobCreatedV1 } from './batch-job-created.v1.js';
import type { BatchJobCreatedV2 } from './batch-job-created.v2.js';
import { contractOf } from './event-catalogue.js';
import type { NodeJoinedV1 } from './node-joined.v1.js';
import { WHOLE_COMPUTE_MILLI, type NodeJoinedV2 } from './node-joined.v2.js';
import type { PlacementRefusedV1 } from './placement-refused.v1.js';
import type { PlacementRefusedV2 } from './placement-refused.v2.js';
import type { ReplicaPlacedV1 } from './replica-placed.v1.js';
import type { ReplicaPlacedV2 } from './replica-placed.v2.js';
import type { UsageRecordedV1 } from './usage-recorded.v1.js';
import type { UsageRecordedV2 } from './usage-recorded.v2.js';

/** Turns one published version into the next. Pure, and kept for ever. */
export interface Upcaster {
  readonly from: string;
  readonly to: string;
  upcast(data: unknown): unknown;
}

/** Every step from an old version to the next one. */
export const upcasters: readonly Upcaster[] = [
  {
    from: 'api-key.created.v1',
    to: 'api-key.created.v2',
    upcast: (data): ApiKeyCreatedV2 => ({ ...(data as ApiKeyCreatedV1), serviceAccountId: null, scopes: null, replacesKeyId: null }),
  },
  { from: 'batch-job.created.v1', to: 'batch-job.created.v2', upcast: (data): BatchJobCreatedV2 => ({ ...(data as BatchJobCreatedV1), outputExpiresAfterSeconds: null }) },
  { from: 'node.joined.v1', to: 'node.joined.v2', upcast: (data) => nodeWithDetails(data as NodeJoinedV1) },
  { from: 'replica.placed.v1', to: 'replica.placed.v2', upcast: (data) => placementWithMembers(data as ReplicaPlacedV1) },
  { from: 'placement.decided.v1', to: 'placement.decided.v2', upcast: (data) => placementWithMembers(data as ReplicaPlacedV1) },
  { from: 'placement.refused.v1', to: 'placement.refused.v2', upcast: (data): PlacementRefusedV2 => ({ ...(data as PlacementRefusedV1), hint: null }) },
  { from: 'usage.recorded.v1', to: 'usage.recorded.v2', upcast: (data): UsageRecordedV2 => ({ records: [data as UsageRecordedV1] }) },
];

/** Version 1 said nothing of links, and plans took any accelerators of one type together: they count as one island. */
function nodeWithDetails(node: NodeJoinedV1): NodeJoinedV2 {
  return {
    ...node,
    accelerators: node.accelerators.map((accelerator) => ({
      ...accelerator, usableBytes: accelerator.memoryBytes, computeMilli: WHOLE_COMPUTE_MILLI, islandId: accelerator.type === 'cpu' ? null : accelerator.type, mig: null,
    })),
    failureDomain: node.nodeId,
    taints: [],
    market: 'on_demand',
    price: null,
  };
}

/** Version 1 knew memory only, on one node. */
function placementWithMembers({ nodeId, acceleratorIds, reason, ...placement }: ReplicaPlacedV1): ReplicaPlacedV2 {
  return {
    ...placement, members: [{ nodeId, acceleratorIds }], computeMilli: 0, cpuMilli: 0, hostMemoryBytes: 0, mig: null,
    option: { precision: null, market: 'on_demand', dollarsPerHour: null }, replaces: null, reason: { ...reason, plan: null },
  };
}

export type ParsedEvent =
  | { readonly kind: 'parsed'; readonly type: string; readonly data: unknown }
  | { readonly kind: 'poison'; readonly reason: string };

/** More steps than this between two versions is a loop in the table. */
const UPCAST_STEPS_MAX = 100;

/**
 * Checks a stored event against the contract of its version, then lifts it to the newest version.
 * What cannot be read is `poison` with a reason, never an exception.
 */
export function parseStoredEvent(type: string, data: unknown, steps: readonly Upcaster[] = upcasters): ParsedEvent {
  let current = { type, data };
  for (let step = 0; step < UPCAST_STEPS_MAX; step += 1) {
    const upcaster = steps.find((candidate) => candidate.from === current.type);
    if (upcaster === undefined) return parseNewest(current.type, current.data);
    try {
      current = { type: upcaster.to, data: upcaster.upcast(current.data) };
    } catch (error) {
      return { kind: 'poison', reason: `upcasting ${current.type} to ${upcaster.to} failed: ${String(error)}` };
    }
  }
  return { kind: 'poison', reason: `the upcasters from ${type} do not end` };
}

function parseNewest(type: string, data: unknown): ParsedEvent {
  const contract = contractOf(type);
  if (contract === undefined) return { kind: 'poison', reason: `no contract for type ${type}` };
  const parsed = contract.schema.safeParse(data);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { kind: 'poison', reason: `${type} does not match its contract at ${issue?.path.join('.') || 'the root'}: ${issue?.message ?? ''}` };
  }
  return { kind: 'parsed', type, data: parsed.data };
}

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, id } from './fields.js';

/** Where replicas of an endpoint may stand and what each takes, beyond type and number of accelerators. */
export const placementRules = z.object({
  /** Nodes that one replica is spread over, with the endpoint's accelerators on each; all of them or none. */
  nodes: z.int().min(1).max(64),
  /** Compute set aside of each accelerator, in thousandths; null shares it without a reserved part. */
  computeMilli: z.int().min(1).max(1_000).nullable(),
  /** A MIG instance instead of a whole or shared GPU, as in `1g.10gb`; null without. */
  migProfile: z.string().min(1).max(50).nullable(),
  /** Set aside on each node: thousandths of a core, and bytes of host memory. null leaves it to the scheduler. */
  cpuMilli: z.int().min(0).max(1_024_000).nullable(),
  hostMemoryBytes: bytes.nullable(),
  /** Whether nodes that may be taken back at short notice will do. */
  allowsSpot: z.boolean(),
  /** Only these nodes; null allows any. */
  pinnedNodeIds: z.array(id).min(1).max(1_000).nullable(),
  /** Taints that its replicas may stand on. */
  tolerations: z.array(z.string().min(1).max(200)).max(50),
  /** The same request is to give the same bits: other weights, and hardware that rounds otherwise, are out. Left out, they are not. */
  isExact: z.boolean().optional(),
});
export type PlacementRules = z.infer<typeof placementRules>;

export const endpointPlacementSetV1 = defineEvent({
  type: 'endpoint.placement-set.v1',
  context: 'registry',
  aggregate: 'endpoint',
  summary: 'Rules were set for where the replicas of an endpoint may stand and what each takes.',
  schema: z.object({ endpointId: id, rules: placementRules }),
  example: { endpointId: 'ep_01', rules: { nodes: 1, computeMilli: 250, migProfile: null, cpuMilli: null, hostMemoryBytes: null, allowsSpot: true, pinnedNodeIds: null, tolerations: ['gpu=dedicated'] } },
});

export type EndpointPlacementSetV1 = z.infer<typeof endpointPlacementSetV1.schema>;

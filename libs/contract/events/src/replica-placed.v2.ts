import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';
import { replicaPlacedV1 } from './replica-placed.v1.js';

const { nodeId, acceleratorIds, reason, ...kept } = replicaPlacedV1.schema.shape;

export const replicaPlacedV2 = defineEvent({
  type: 'replica.placed.v2',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'The scheduler chose nodes and accelerators for a replica, whole or in parts, and says why.',
  schema: z.object({
    ...kept,
    /** Nodes with the accelerators on each; several are a gang, which starts and ends together. The first one leads. */
    members: z.array(z.object({ nodeId, acceleratorIds })).min(1).max(64),
    /** Set aside of each accelerator, in thousandths; 0 shares its time without a reserved part. */
    computeMilli: z.int().min(0).max(1_000),
    /** Set aside on each member beside the accelerators: thousandths of a core, and bytes. */
    cpuMilli: z.int().min(0),
    hostMemoryBytes: z.int().nonnegative(),
    /** The MIG instance of its only accelerator that it runs in, to be made first where it does not exist; null without MIG. */
    mig: z.object({ profile: z.string().min(1).max(50), start: z.int().min(0).max(15) }).nullable(),
    /** The way to serve the endpoint that was chosen: precision of the weights where known, market and dollars an hour. */
    option: z.object({
      precision: z.string().max(50).nullable(),
      market: z.enum(['on_demand', 'spot']),
      dollarsPerHour: z.number().nonnegative().nullable(),
    }),
    /** The replica that drains once this one is ready; null for one that is added. */
    replaces: id.nullable(),
    reason: reason.extend({
      /** What the whole plan costs, and what no plan for the same endpoints costs less than; null where no prices are known. */
      plan: z.object({ dollarsPerHour: z.number().nonnegative(), lowerBoundDollarsPerHour: z.number().nonnegative() }).nullable(),
    }),
  }),
  example: {
    replicaId: 'rep_01',
    endpointId: 'ep_01',
    modelVersionId: 'mv_01',
    members: [{ nodeId: 'node_01', acceleratorIds: ['acc_01'] }],
    reservedBytes: 400_000_000,
    computeMilli: 0,
    cpuMilli: 0,
    hostMemoryBytes: 0,
    mig: null,
    option: { precision: null, market: 'on_demand', dollarsPerHour: null },
    replaces: null,
    reason: { ...replicaPlacedV1.example.reason, plan: null },
  },
});

export type ReplicaPlacedV2 = z.infer<typeof replicaPlacedV2.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes } from './fields.js';
import { nodeJoinedV1 } from './node-joined.v1.js';

/** An accelerator that nobody shares offers this much compute, in thousandths. */
export const WHOLE_COMPUTE_MILLI = 1_000;

/** A MIG instance that exists: a profile at the memory slice where it begins. */
export const migInstance = z.object({
  /** As the driver names it: `3g.40gb`. */
  profile: z.string().min(1).max(50),
  start: z.int().min(0).max(15),
  /** How engines are told to use it; null where the platform that hands it out does not say. */
  uuid: z.string().max(200).nullable(),
});
export type MigInstanceFact = z.infer<typeof migInstance>;

export const nodeJoinedV2 = defineEvent({
  type: 'node.joined.v2',
  context: 'fleet',
  aggregate: 'node',
  summary: 'An agent reported its machine: accelerators with their links, MIG instances and usable memory, what fails with it, and what it costs. Sent again when that changes.',
  schema: nodeJoinedV1.schema.extend({
    accelerators: z.array(nodeJoinedV1.schema.shape.accelerators.element.extend({
      /** What engines find of `memoryBytes`; plans count with this. */
      usableBytes: bytes,
      /** Compute that it offers, in thousandths of a whole accelerator. */
      computeMilli: z.int().min(1).max(WHOLE_COMPUTE_MILLI),
      /** Accelerators of the node with the same name here reach each other by a fast link; null for one that reaches none. */
      islandId: z.string().max(100).nullable(),
      /** null where it cannot be partitioned, or where the platform hands out the parts as accelerators of their own. */
      mig: z.object({ isEnabled: z.boolean(), instances: z.array(migInstance).max(16) }).nullable(),
    })).max(64),
    /** What fails together with the node, such as its rack; the node's own id where nothing is known. */
    failureDomain: z.string().min(1).max(200),
    /** Only replicas whose endpoint tolerates each of these are put here. */
    taints: z.array(z.string().min(1).max(200)).max(50),
    /** A spot node may be taken back by its owner at short notice. */
    market: z.enum(['on_demand', 'spot']),
    /** US dollars for each accelerator and hour, and who says so; null where nobody does. */
    price: z.object({ dollarsPerGpuHour: z.number().nonnegative().max(100_000), source: z.string().min(1).max(300) }).nullable(),
  }),
  example: {
    ...nodeJoinedV1.example,
    accelerators: [{ acceleratorId: 'acc_01', type: 'cpu', memoryBytes: 25_000_000_000, device: null, usableBytes: 25_000_000_000, computeMilli: WHOLE_COMPUTE_MILLI, islandId: null, mig: null }],
    failureDomain: 'rack-7',
    taints: [],
    market: 'on_demand',
    price: null,
  },
});

export type NodeJoinedV2 = z.infer<typeof nodeJoinedV2.schema>;

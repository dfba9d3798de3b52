import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, id, milliseconds, tokens } from './fields.js';

export const replicaProfileMeasuredV1 = defineEvent({
  type: 'replica-profile.measured.v1',
  context: 'fleet',
  aggregate: 'replica-profile',
  summary: 'What a ready replica showed of its model version on its device; measured figures replace estimated ones in later plans.',
  schema: z.object({
    replicaId: id,
    endpointId: id,
    modelVersionId: id,
    precision: z.string().max(50).nullable(),
    device: z.object({
      /** As nodes report it: `cpu`, `h100`. */
      acceleratorType: z.string().max(50),
      /** The MIG profile; null for whole accelerators. */
      slice: z.string().max(50).nullable(),
      tensorParallel: z.int().min(1).max(64),
      nodes: z.int().min(1).max(64),
    }),
    /** Of the weights, on all accelerators together; null where the engine does not say. */
    weightBytes: bytes.nullable(),
    /** Tokens of key-value cache, on all accelerators together; null where the engine does not say. */
    kvTokens: tokens.nullable(),
    start: z.object({
      /** Where the artifacts came from: pulled over the network, in the node's cache, or nothing to load. */
      source: z.enum(['object_store', 'node_cache', 'none']),
      pullMs: milliseconds,
      loadMs: milliseconds,
      warmUpMs: milliseconds,
    }),
    /** By concurrency, ascending, with the mean tokens of the requests that were seen; empty where only the start was measured. */
    curve: z.array(z.object({
      concurrency: z.int().min(1).max(10_000),
      requestsPerS: z.number().positive(),
      ttftMs: milliseconds,
      itlMs: milliseconds,
      promptTokens: tokens,
      completionTokens: tokens,
      /** Looks at the engine that the point is the median of; left out where nobody counted. */
      samples: z.int().min(1).optional(),
    })).max(100),
  }),
  example: {
    replicaId: 'rep_01',
    endpointId: 'ep_01',
    modelVersionId: 'mv_01',
    precision: 'Q4_1',
    device: { acceleratorType: 'cpu', slice: null, tensorParallel: 1, nodes: 1 },
    weightBytes: 98_000_000,
    kvTokens: 8_192,
    start: { source: 'node_cache', pullMs: 0, loadMs: 2_100, warmUpMs: 180 },
    curve: [],
  },
});

export type ReplicaProfileMeasuredV1 = z.infer<typeof replicaProfileMeasuredV1.schema>;

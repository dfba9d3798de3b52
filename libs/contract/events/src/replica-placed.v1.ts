import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, id } from './fields.js';

export const replicaPlacedV1 = defineEvent({
  type: 'replica.placed.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'The scheduler chose a node and accelerators for a replica, and says why.',
  schema: z.object({
    replicaId: id,
    endpointId: id,
    modelVersionId: id,
    nodeId: id,
    acceleratorIds: z.array(id).max(64),
    /** Memory set aside for weights, cache and overhead. */
    reservedBytes: bytes,
    reason: z.object({
      summary: z.string().max(1_000),
      /** Every node that was looked at: its score, or why it was left out. */
      candidates: z.array(z.object({ nodeId: id, score: z.number().nullable(), excluded: z.string().max(500).nullable() })).max(100),
    }),
  }),
  example: {
    replicaId: 'rep_01',
    endpointId: 'ep_01',
    modelVersionId: 'mv_01',
    nodeId: 'node_01',
    acceleratorIds: ['acc_01'],
    reservedBytes: 400_000_000,
    reason: { summary: 'best fit: 24.6 GB stay free on acc_01', candidates: [{ nodeId: 'node_01', score: 0.98, excluded: null }] },
  },
});

export type ReplicaPlacedV1 = z.infer<typeof replicaPlacedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, engineKind, id } from './fields.js';

export const nodeJoinedV1 = defineEvent({
  type: 'node.joined.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'An agent reported its machine, with everything on it that can hold a replica. Sent again when that changes.',
  schema: z.object({
    nodeId: id,
    hostname: z.string().max(253),
    accelerators: z.array(z.object({
      acceleratorId: id,
      /** `cpu`, or a GPU type of the catalogue such as `h100`. */
      type: z.string().max(50),
      memoryBytes: bytes,
      /** Device index or UUID as the engine is told; null for a CPU. */
      device: z.string().max(200).nullable(),
    })).max(64),
    cpuCores: z.int().min(1),
    memoryBytes: bytes,
    /** Engines this node can start, with their versions. */
    engines: z.array(z.object({ kind: engineKind, version: z.string().max(100) })).max(20),
    agentVersion: z.string().max(50),
  }),
  example: {
    nodeId: 'node_01',
    hostname: 'gpu-01',
    accelerators: [{ acceleratorId: 'acc_01', type: 'cpu', memoryBytes: 25_000_000_000, device: null }],
    cpuCores: 2,
    memoryBytes: 25_000_000_000,
    engines: [{ kind: 'llama.cpp', version: 'xllamacpp 2026.10.11549' }],
    agentVersion: '0.1.0',
  },
});

export type NodeJoinedV1 = z.infer<typeof nodeJoinedV1.schema>;

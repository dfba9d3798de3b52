import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { engineKind, id, milliseconds, tokens } from './fields.js';

export const replicaReadyV1 = defineEvent({
  type: 'replica.ready.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'A replica answered a real warm-up generation and takes traffic.',
  schema: z.object({
    replicaId: id,
    /** Where gateways reach the engine. */
    url: z.url().max(2_048),
    engine: engineKind,
    /** The name the engine knows the model by. */
    servedModel: z.string().max(500),
    slots: z.int().min(1),
    contextTokens: tokens,
    timings: z.object({ pullMs: milliseconds, loadMs: milliseconds, warmUpMs: milliseconds }),
  }),
  example: {
    replicaId: 'rep_01',
    url: 'http://127.0.0.1:40123',
    engine: 'llama.cpp',
    servedModel: 'smollm2-135m-instruct',
    slots: 4,
    contextTokens: 2_048,
    timings: { pullMs: 0, loadMs: 2_100, warmUpMs: 180 },
  },
});

export type ReplicaReadyV1 = z.infer<typeof replicaReadyV1.schema>;

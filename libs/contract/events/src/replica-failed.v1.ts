import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const replicaFailedV1 = defineEvent({
  type: 'replica.failed.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'A replica could not start, or died; what it held is free.',
  schema: z.object({
    replicaId: id,
    /** The phase it failed in; `ready` when it died while serving. */
    phase: z.enum(['placed', 'pulling', 'loading', 'warming', 'ready', 'draining']),
    code: z.enum(['pull_failed', 'digest_mismatch', 'no_disk_space', 'engine_missing', 'engine_exited', 'start_timeout', 'warm_up_failed', 'node_lost', 'unreachable']),
    reason: z.string().max(2_000),
  }),
  example: { replicaId: 'rep_01', phase: 'ready', code: 'engine_exited', reason: 'the engine exited with signal SIGKILL' },
});

export type ReplicaFailedV1 = z.infer<typeof replicaFailedV1.schema>;

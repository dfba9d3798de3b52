import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';
import { migInstance } from './node-joined.v2.js';

/** One step: each is safe by itself, since only instances that nobody uses are destroyed. */
export const migStep = z.object({ kind: z.enum(['create', 'destroy']), ...migInstance.omit({ uuid: true }).shape });
export type MigStepFact = z.infer<typeof migStep>;

export const migChangePlannedV1 = defineEvent({
  type: 'mig.change-planned.v1',
  context: 'fleet',
  aggregate: 'mig-geometry',
  summary: 'The scheduler planned how the MIG instances of one GPU change, step by step, for a replica that was placed there.',
  schema: z.object({
    changeId: id,
    nodeId: id,
    acceleratorId: id,
    /** In the order in which they are taken. */
    steps: z.array(migStep).min(1).max(32),
    /** The replica that waits for it. */
    forReplicaId: id,
    reason: z.string().max(1_000),
  }),
  example: {
    changeId: 'mig_01',
    nodeId: 'node_01',
    acceleratorId: 'acc_01',
    steps: [{ kind: 'destroy', profile: '1g.10gb', start: 0 }, { kind: 'create', profile: '3g.40gb', start: 0 }],
    forReplicaId: 'rep_01',
    reason: 'rep_01 needs 3g.40gb at slice 0; 1 idle instance is in its way',
  },
});

export type MigChangePlannedV1 = z.infer<typeof migChangePlannedV1.schema>;

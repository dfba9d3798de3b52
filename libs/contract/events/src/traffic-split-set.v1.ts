import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, modelName } from './fields.js';

/** Endpoints that one name may be spread over. */
export const SPLIT_TARGETS_MAX = 16;

/** One endpoint that takes a part of the traffic of a name. Weights count against the sum of all; 0 takes nothing. */
export const splitTarget = z.object({ endpointId: id, weight: z.int().min(0).max(1_000_000) });

/** Whose requests stay together: those of one session, of one user, of one organisation, or of nobody. */
export const splitSticky = z.enum(['session', 'user', 'organisation', 'request']);
export type SplitSticky = z.infer<typeof splitSticky>;

export const trafficSplitSetV1 = defineEvent({
  type: 'traffic-split.set.v1',
  context: 'registry',
  aggregate: 'traffic-split',
  summary: 'Requests for a name go to several endpoints by weight. Replaces the split that the name had before.',
  schema: z.object({
    splitId: id,
    /** What clients call; it may be the name of an endpoint as well, which then gets only its own share. */
    name: modelName,
    /** Null for a name that every organisation calls. */
    organisationId: id.nullable(),
    targets: z.array(splitTarget).min(1).max(SPLIT_TARGETS_MAX),
    sticky: splitSticky,
    reason: z.string().max(500),
  }),
  example: {
    splitId: 'split_01', name: 'assistant', organisationId: null, targets: [{ endpointId: 'ep_01', weight: 95 }, { endpointId: 'ep_02', weight: 5 }], sticky: 'user', reason: 'canary of the new weights',
  },
});

export type TrafficSplitSetV1 = z.infer<typeof trafficSplitSetV1.schema>;

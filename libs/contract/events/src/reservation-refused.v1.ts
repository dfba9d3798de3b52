import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';
import { serviceLevel } from './service-level.js';

/** A service level like the one that was asked for, which would be admitted. */
export const fittingAlternative = z.object({
  kind: z.enum(['less', 'later', 'other-hardware', 'more-nodes']),
  /** Of the rate that was asked for, 0 to 1. */
  share: z.number().min(0).max(1),
  from: instant,
  gpuType: z.string().max(50),
  precision: z.string().max(50),
  replicas: z.int().min(1),
  dollarsPerHour: z.number().nonnegative().nullable(),
  /** In words, with the next step. */
  says: z.string().max(500),
});
export type FittingAlternative = z.infer<typeof fittingAlternative>;

export const reservationRefusedV1 = defineEvent({
  type: 'reservation.refused.v1',
  context: 'fleet',
  aggregate: 'commitment-ledger',
  summary: 'A service level was not admitted; says why, and which ones would be.',
  schema: z.object({
    reservationId: id,
    level: serviceLevel,
    code: z.enum(['no_capacity', 'no_profile', 'objective_unreachable', 'hardware_mismatch', 'too_many']),
    reason: z.string().max(1_000),
    wouldFit: z.array(fittingAlternative).max(8),
  }),
  example: {
    reservationId: 'res_02',
    level: {
      endpointId: 'ep_01', organisationId: null, requestsPerS: 200, tokensPerS: 0, replicas: 0, promptTokens: 1_000, completionTokens: 200, latencyClass: 'interactive', ttftMs: 2_000, itlMs: 80,
      priority: 500, gpuType: null, tolerates: 'nothing', from: '2026-12-01T00:00:00.000Z', to: '2026-12-31T00:00:00.000Z',
    },
    code: 'no_capacity',
    reason: '200 requests/s need 18 x H100-80GB-SXM; 8 are there and 2 of them are promised to others',
    wouldFit: [{ kind: 'less', share: 0.33, from: '2026-12-01T00:00:00.000Z', gpuType: 'H100-80GB-SXM', precision: 'fp8', replicas: 6, dollarsPerHour: 21, says: '66 requests/s would fit: 6 x H100-80GB-SXM at fp8' }],
  },
});

export type ReservationRefusedV1 = z.infer<typeof reservationRefusedV1.schema>;

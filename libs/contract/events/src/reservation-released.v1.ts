import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const reservationReleasedV1 = defineEvent({
  type: 'reservation.released.v1',
  context: 'fleet',
  aggregate: 'commitment-ledger',
  summary: 'A promise ended: its capacity is free for others.',
  schema: z.object({
    reservationId: id,
    endpointId: id,
    cause: z.enum(['operator', 'expired', 'endpoint-retired']),
    reason: z.string().max(500),
  }),
  example: { reservationId: 'res_01', endpointId: 'ep_01', cause: 'operator', reason: 'released by key_01' },
});

export type ReservationReleasedV1 = z.infer<typeof reservationReleasedV1.schema>;

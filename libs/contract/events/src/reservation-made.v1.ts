import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';
import { committedCapacity, serviceLevel } from './service-level.js';

/**
 * The fleet's one ledger of promises. Its expected version keeps two admissions that are decided at once from promising
 * the same capacity twice.
 */
export const reservationMadeV1 = defineEvent({
  type: 'reservation.made.v1',
  context: 'fleet',
  aggregate: 'commitment-ledger',
  summary: 'A service level was admitted: this capacity is set aside for it from its beginning to its end.',
  schema: z.object({ reservationId: id, level: serviceLevel, capacity: committedCapacity, reason: z.string().max(1_000) }),
  example: {
    reservationId: 'res_01',
    level: {
      endpointId: 'ep_01', organisationId: 'org_01', requestsPerS: 20, tokensPerS: 0, replicas: 0, promptTokens: 1_000, completionTokens: 200, latencyClass: 'interactive', ttftMs: 2_000, itlMs: 80,
      priority: 500, gpuType: 'H100-80GB-SXM', tolerates: 'replica', from: '2026-12-01T00:00:00.000Z', to: null,
    },
    capacity: {
      gpuType: 'H100-80GB-SXM', sharing: 'shares', precision: 'fp8', requestsPerS: 22.5, perDomainMax: null, leadSeconds: 62, dollarsPerHour: 10.5, figuresFrom: 'estimated',
      parts: [{ count: 3, accelerators: 1, nodes: 1, computeMilli: 1_000, vramMib: 81_101, migProfile: null, cpuMilli: 2_000, hostMemoryMib: 4_096 }],
    },
    reason: '2 replicas carry 20 requests/s within 2000 ms and 80 ms, and one more may fail',
  },
});

export type ReservationMadeV1 = z.infer<typeof reservationMadeV1.schema>;

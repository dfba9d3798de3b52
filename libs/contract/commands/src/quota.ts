import { id } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

/** Limits of one organisation that one message may carry. */
export const QUOTA_BUCKETS_MAX = 1_000;

const amount = z.number().nonnegative();
const bucketKey = z.string().min(1).max(400);

/** What a gateway has of one limit; the meaning of each field stands at `QuotaReport` of the access domain. */
export const quotaReport = z.object({
  key: bucketKey,
  kind: z.enum(['window', 'held']),
  limit: amount,
  held: amount,
  usedTotal: amount,
  recentUsed: amount,
  refunds: z.array(z.object({ bin: z.int(), amount })).max(200),
  need: amount,
  demand: amount,
  headroom: amount,
});

export const quotaGrant = z.object({
  key: bucketKey,
  granted: amount,
  available: amount,
  bin: z.int(),
  resetMs: amount,
  retryAfterMs: amount,
  gateways: z.int().positive(),
});

export const syncQuota = defineCommand({
  subject: 'cmd.router.quota',
  summary: 'Reports what a gateway used of the limits of one organisation, and borrows what it needs next. One router is the authority of an organisation.',
  request: z.object({
    gatewayId: id,
    organisationId: id,
    /** Grows with each report of a gateway, so that one that comes late is not taken for the newest. */
    sequence: z.int().nonnegative(),
    buckets: z.array(quotaReport).min(1).max(QUOTA_BUCKETS_MAX),
  }),
  reply: z.object({
    /** The authority that answered: what an earlier one counted, this one does not know. */
    ownerId: id,
    /** True while the authority is new and only listens: ask again shortly. */
    isLearning: z.boolean(),
    grants: z.array(quotaGrant),
  }),
});

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';

/** Keys that one event may name. */
export const KEY_USES_MAX = 1_000;

export const keyUsesNotedV1 = defineEvent({
  type: 'key-uses.noted.v1',
  context: 'access',
  aggregate: 'key-uses',
  summary: 'When keys were last used, as one gateway saw it: many keys in one event, and each key seldom.',
  schema: z.object({
    gatewayId: id,
    uses: z.array(z.object({ keyId: id, usedAt: instant })).min(1).max(KEY_USES_MAX),
  }),
  example: { gatewayId: 'inst_01', uses: [{ keyId: 'key_01', usedAt: '2026-11-29T12:00:00.000Z' }] },
});

export type KeyUsesNotedV1 = z.infer<typeof keyUsesNotedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';

export const apiKeyRotatedV1 = defineEvent({
  type: 'api-key.rotated.v1',
  context: 'access',
  aggregate: 'api-key',
  summary: 'Another key took the place of this one, which goes on working until a given instant.',
  schema: z.object({
    keyId: id,
    replacedByKeyId: id,
    /** From here on the old key is refused. */
    worksUntil: instant,
  }),
  example: { keyId: 'key_01', replacedByKeyId: 'key_02', worksUntil: '2026-11-30T12:00:00.000Z' },
});

export type ApiKeyRotatedV1 = z.infer<typeof apiKeyRotatedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const apiKeyRevokedV1 = defineEvent({
  type: 'api-key.revoked.v1',
  context: 'access',
  aggregate: 'api-key',
  summary: 'An API key stopped working for good.',
  schema: z.object({
    keyId: id,
    reason: z.string().max(500),
  }),
  example: { keyId: 'key_01', reason: 'rotated' },
});

export type ApiKeyRevokedV1 = z.infer<typeof apiKeyRevokedV1.schema>;

import { z } from 'zod';
import { apiKeyCreatedV1 } from './api-key-created.v1.js';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const apiKeyCreatedV2 = defineEvent({
  type: 'api-key.created.v2',
  context: 'access',
  aggregate: 'api-key',
  summary: 'An API key was made, perhaps for a service account and narrowed to some scopes. The key itself was shown once and is not stored; its HMAC is.',
  schema: apiKeyCreatedV1.schema.extend({
    /** The service account that the key belongs to; null for a key of a person. */
    serviceAccountId: id.nullable(),
    /** What the key may do, as in `files` or `usage.read`; null allows everything that its kind opens. */
    scopes: z.array(z.string().regex(/^[a-z]+(\.[a-z]+)?$/)).min(1).max(50).nullable(),
    /** The key that this one takes the place of; null for a key that replaces none. */
    replacesKeyId: id.nullable(),
  }),
  example: { ...apiKeyCreatedV1.example, serviceAccountId: 'sa_01', scopes: ['inference'], replacesKeyId: null },
});

export type ApiKeyCreatedV2 = z.infer<typeof apiKeyCreatedV2.schema>;

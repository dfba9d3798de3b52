import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant, modelName } from './fields.js';

export const apiKeyCreatedV1 = defineEvent({
  type: 'api-key.created.v1',
  context: 'access',
  aggregate: 'api-key',
  summary: 'An API key was made. The key itself was shown once and is not stored; its HMAC is.',
  schema: z.object({
    keyId: id,
    organisationId: id,
    projectId: id,
    name: z.string().min(1).max(200),
    /** An admin key opens the admin API and nothing else; an inference key the reverse. */
    kind: z.enum(['inference', 'admin']),
    /** HMAC-SHA-256 of the key under the installation's pepper, hexadecimal. */
    hmac: z.string().regex(/^[0-9a-f]{64}$/),
    /** The first characters, for people to recognise the key by. */
    prefix: z.string().max(16),
    lastFour: z.string().length(4),
    /** Model names the key may call; null allows every model its organisation may call. */
    models: z.array(modelName).max(1_000).nullable(),
    expiresAt: instant.nullable(),
  }),
  example: {
    keyId: 'key_01',
    organisationId: 'org_01',
    projectId: 'proj_01',
    name: 'laptop',
    kind: 'inference',
    hmac: '0'.repeat(64),
    prefix: 'sk-ps-Ab3d',
    lastFour: 'x9Yz',
    models: null,
    expiresAt: null,
  },
});

export type ApiKeyCreatedV1 = z.infer<typeof apiKeyCreatedV1.schema>;

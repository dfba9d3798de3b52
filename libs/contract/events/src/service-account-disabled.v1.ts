import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const serviceAccountDisabledV1 = defineEvent({
  type: 'service-account.disabled.v1',
  context: 'access',
  aggregate: 'service-account',
  summary: 'A service account stopped for good, and every key of it with it.',
  schema: z.object({ serviceAccountId: id, reason: z.string().max(500) }),
  example: { serviceAccountId: 'sa_01', reason: 'the program is gone' },
});

export type ServiceAccountDisabledV1 = z.infer<typeof serviceAccountDisabledV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const serviceAccountCreatedV1 = defineEvent({
  type: 'service-account.created.v1',
  context: 'access',
  aggregate: 'service-account',
  summary: 'An account for a program was made inside a project; its keys stop together when it is disabled.',
  schema: z.object({
    serviceAccountId: id,
    organisationId: id,
    projectId: id,
    name: z.string().min(1).max(200),
  }),
  example: { serviceAccountId: 'sa_01', organisationId: 'org_01', projectId: 'proj_01', name: 'nightly reports' },
});

export type ServiceAccountCreatedV1 = z.infer<typeof serviceAccountCreatedV1.schema>;

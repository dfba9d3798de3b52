import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const organisationCreatedV1 = defineEvent({
  type: 'organisation.created.v1',
  context: 'access',
  aggregate: 'organisation',
  summary: 'A customer, the tenant that everything else belongs to, was created.',
  schema: z.object({
    organisationId: id,
    name: z.string().min(1).max(200),
  }),
  example: { organisationId: 'org_01', name: 'Acme' },
});

export type OrganisationCreatedV1 = z.infer<typeof organisationCreatedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const organisationResumedV1 = defineEvent({
  type: 'organisation.resumed.v1',
  context: 'access',
  aggregate: 'organisation',
  summary: 'An organisation that was suspended may do again what its keys allow.',
  schema: z.object({ organisationId: id, reason: z.string().max(500) }),
  example: { organisationId: 'org_01', reason: 'invoices are paid' },
});

export type OrganisationResumedV1 = z.infer<typeof organisationResumedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const organisationSuspendedV1 = defineEvent({
  type: 'organisation.suspended.v1',
  context: 'access',
  aggregate: 'organisation',
  summary: 'An organisation may do nothing any more, with whichever key, until it is resumed.',
  schema: z.object({ organisationId: id, reason: z.string().max(500) }),
  example: { organisationId: 'org_01', reason: 'invoices are overdue' },
});

export type OrganisationSuspendedV1 = z.infer<typeof organisationSuspendedV1.schema>;

import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const projectCreatedV1 = defineEvent({
  type: 'project.created.v1',
  context: 'access',
  aggregate: 'project',
  summary: 'A project inside an organisation was created; keys and usage belong to it.',
  schema: z.object({
    projectId: id,
    organisationId: id,
    name: z.string().min(1).max(200),
  }),
  example: { projectId: 'proj_01', organisationId: 'org_01', name: 'default' },
});

export type ProjectCreatedV1 = z.infer<typeof projectCreatedV1.schema>;

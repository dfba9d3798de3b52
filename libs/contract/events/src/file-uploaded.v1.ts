import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, digest, id, instant } from './fields.js';

export const fileUploadedV1 = defineEvent({
  type: 'file.uploaded.v1',
  context: 'batch',
  aggregate: 'file',
  summary: 'A file was stored. Its bytes are in the object store, never in the log.',
  schema: z.object({
    fileId: id,
    organisationId: id,
    projectId: id,
    filename: z.string().min(1).max(255),
    purpose: z.enum(['batch', 'batch_output']),
    bytes,
    digest,
    objectKey: z.string().max(1_024),
    expiresAt: instant.nullable(),
  }),
  example: {
    fileId: 'file_01',
    organisationId: 'org_01',
    projectId: 'proj_01',
    filename: 'input.jsonl',
    purpose: 'batch',
    bytes: 1_024,
    digest: `sha256:${'a'.repeat(64)}`,
    objectKey: 'files/org_01/file_01',
    expiresAt: null,
  },
});

export type FileUploadedV1 = z.infer<typeof fileUploadedV1.schema>;

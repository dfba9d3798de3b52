import { batchJobCreatedV2, fileUploadedV1, id } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

/** OpenAI's file object. */
export const fileObject = z.object({
  id: z.string(),
  object: z.literal('file'),
  bytes: z.int(),
  created_at: z.int(),
  expires_at: z.int().nullable(),
  filename: z.string(),
  purpose: z.string(),
  status: z.enum(['uploaded', 'processed', 'error']),
  status_details: z.string().nullable(),
});
export type FileObject = z.infer<typeof fileObject>;

/** OpenAI's batch object. */
export const batchObject = z.object({
  id: z.string(),
  object: z.literal('batch'),
  endpoint: z.string(),
  model: z.string().nullable(),
  errors: z.object({ object: z.literal('list'), data: z.array(z.object({ code: z.string(), message: z.string(), param: z.string().nullable(), line: z.int().nullable() })) }).nullable(),
  input_file_id: z.string(),
  completion_window: z.string(),
  status: z.enum(['validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled']),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  created_at: z.int(),
  in_progress_at: z.int().nullable(),
  expires_at: z.int().nullable(),
  finalizing_at: z.int().nullable(),
  completed_at: z.int().nullable(),
  failed_at: z.int().nullable(),
  expired_at: z.int().nullable(),
  cancelling_at: z.int().nullable(),
  cancelled_at: z.int().nullable(),
  request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
  metadata: z.record(z.string(), z.string()).nullable(),
});
export type BatchObject = z.infer<typeof batchObject>;

const tenant = { organisationId: id };

/** The bytes are in the object store already, under `objectKey`; this makes them a file. */
export const registerFile = defineCommand({
  subject: 'cmd.batch.register-file',
  summary: 'Makes an uploaded object a file of one organisation.',
  request: fileUploadedV1.schema,
  reply: fileObject,
});
export const getFile = defineCommand({
  subject: 'qry.batch.file',
  summary: 'One file of one organisation, with where its bytes are.',
  request: z.object({ ...tenant, fileId: id }),
  reply: z.object({ file: fileObject, objectKey: z.string() }),
});
export const listFiles = defineCommand({
  subject: 'qry.batch.files',
  summary: 'Files of one organisation, paged by id.',
  request: z.object({ ...tenant, purpose: z.string().optional(), after: id.optional(), order: z.enum(['asc', 'desc']).default('desc'), limit: z.int().min(1).max(10_000).default(10_000) }),
  reply: z.object({ files: z.array(fileObject), hasMore: z.boolean() }),
});
export const deleteFile = defineCommand({
  subject: 'cmd.batch.delete-file',
  summary: 'Deletes a file and its bytes.',
  request: z.object({ ...tenant, fileId: id }),
  reply: z.object({ fileId: id }),
});
export const createBatch = defineCommand({
  subject: 'cmd.batch.create',
  summary: 'Accepts a batch job; validation follows.',
  request: batchJobCreatedV2.schema.omit({ batchId: true, expiresAt: true, completionWindowSeconds: true }).extend({
    completionWindow: z.string(),
    outputExpiresAfterSeconds: batchJobCreatedV2.schema.shape.outputExpiresAfterSeconds.default(null),
  }),
  reply: batchObject,
});
export const getBatch = defineCommand({
  subject: 'qry.batch.batch',
  summary: 'One batch job of one organisation.',
  request: z.object({ ...tenant, batchId: id }),
  reply: batchObject,
});
export const listBatches = defineCommand({
  subject: 'qry.batch.batches',
  summary: 'Batch jobs of one organisation, newest first.',
  request: z.object({ ...tenant, after: id.optional(), limit: z.int().min(1).max(100).default(20) }),
  reply: z.object({ batches: z.array(batchObject), hasMore: z.boolean() }),
});
export const cancelBatch = defineCommand({
  subject: 'cmd.batch.cancel',
  summary: 'Stops a batch job; what is done stays.',
  request: z.object({ ...tenant, batchId: id }),
  reply: batchObject,
});

import { fileObject } from '@penstock/contract-commands';
import { z } from 'zod';

/** All parts together, as in OpenAI's API. In bytes. */
export const UPLOAD_TOTAL_BYTES_MAX = 8 * 1_024 ** 3;
export const UPLOAD_PARTS_MAX = 1_000;

/** Seconds that a file made of an upload is kept. */
const expiresAfter = z.object({ anchor: z.literal('created_at'), seconds: z.int().min(3_600).max(30 * 86_400) });

/** Body of `POST /v1/uploads`. */
export const createUploadRequest = z.object({
  filename: z.string().min(1).max(255),
  purpose: z.enum(['batch']),
  /** Of the whole file; the parts must come to exactly as many. */
  bytes: z.int().min(1).max(UPLOAD_TOTAL_BYTES_MAX),
  mime_type: z.string().min(1).max(200),
  expires_after: expiresAfter.nullable().optional(),
});
export type CreateUploadRequest = z.infer<typeof createUploadRequest>;

/** Body of `POST /v1/uploads/{upload_id}/complete`. */
export const completeUploadRequest = z.object({
  /** In the order of the file. */
  part_ids: z.array(z.string().min(1).max(128)).min(1).max(UPLOAD_PARTS_MAX),
  /** Of the whole file, hexadecimal; checked where given. */
  md5: z.string().regex(/^[0-9a-f]{32}$/i, 'must be 32 hexadecimal digits').nullable().optional(),
});

export const uploadObject = z.object({
  id: z.string(),
  object: z.literal('upload'),
  bytes: z.int(),
  created_at: z.int(),
  expires_at: z.int(),
  filename: z.string(),
  purpose: z.string(),
  status: z.enum(['pending', 'completed', 'cancelled', 'expired']),
  file: fileObject.nullable(),
});
export type UploadObject = z.infer<typeof uploadObject>;

export const uploadPart = z.object({ id: z.string(), object: z.literal('upload.part'), created_at: z.int(), upload_id: z.string() });

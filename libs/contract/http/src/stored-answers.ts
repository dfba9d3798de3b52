import { z } from 'zod';

/** A request that was accepted with `Prefer: respond-async`, as it is polled. */
export const asyncResponseBody = z.object({
  id: z.string(),
  object: z.literal('async.response'),
  status: z.enum(['running', 'completed', 'failed']),
  request_id: z.string(),
  /** Unix seconds. */
  created_at: z.int(),
  expires_at: z.int(),
  /** Where to poll; with `Accept: text/event-stream` it streams the answer from its beginning. */
  url: z.string(),
  /** Milliseconds until the model answers, while it is still starting and earlier starts tell; else null. */
  loading_eta_ms: z.number().nullable(),
  /** The answer as the request itself would have got it, once it is there. The body of a streamed answer is its text, that of a binary one base64. */
  response: z.object({
    status_code: z.int(),
    content_type: z.string(),
    is_base64: z.boolean(),
    /** Bytes of JSON before the tensors of a binary answer. */
    inference_header_content_length: z.int().optional(),
    body: z.unknown(),
  }).nullable(),
});
export type AsyncResponseBody = z.infer<typeof asyncResponseBody>;

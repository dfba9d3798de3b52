import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const modelVersionRejectedV1 = defineEvent({
  type: 'model-version.rejected.v1',
  context: 'registry',
  aggregate: 'model-version',
  summary: 'The artifacts could not be read or did not match; nothing can be deployed from it.',
  schema: z.object({
    modelVersionId: id,
    code: z.string().max(100),
    reason: z.string().max(2_000),
  }),
  example: { modelVersionId: 'mv_01', code: 'digest_mismatch', reason: 'model.gguf has another sha256 than was pinned.' },
});

export type ModelVersionRejectedV1 = z.infer<typeof modelVersionRejectedV1.schema>;

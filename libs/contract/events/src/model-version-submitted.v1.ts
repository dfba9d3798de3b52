import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { digest, engineKind, id, modelName, tokens } from './fields.js';
import { artifactSource } from './artifact-source.js';

export const modelVersionSubmittedV1 = defineEvent({
  type: 'model-version.submitted.v1',
  context: 'registry',
  aggregate: 'model-version',
  summary: 'Somebody asked to register a model version; its artifacts are being read.',
  schema: z.object({
    modelVersionId: id,
    modelName,
    version: z.string().min(1).max(100),
    engine: engineKind,
    source: artifactSource,
    /** Other places to take the same bytes from, tried in order after `source`. */
    fallbackSources: z.array(artifactSource).max(8),
    /** The digest the main artifact must have, when it is pinned. */
    expectedDigest: digest.nullable(),
    organisationId: id.nullable(),
    /** What the owner says of it: the licence, and figures for what no header tells. */
    license: z.string().max(200).nullable().optional(),
    declared: z.object({ contextTokensMax: tokens, capabilities: z.array(z.enum(['chat', 'completions', 'embeddings', 'infer'])).max(10) }).optional(),
  }),
  example: {
    modelVersionId: 'mv_01',
    modelName: 'smollm2-135m-instruct',
    version: 'q4_1',
    engine: 'llama.cpp',
    source: { kind: 'hugging-face', repository: 'org/repo', revision: 'main', files: ['model.gguf'] },
    fallbackSources: [],
    expectedDigest: null,
    organisationId: null,
  },
});

export type ModelVersionSubmittedV1 = z.infer<typeof modelVersionSubmittedV1.schema>;

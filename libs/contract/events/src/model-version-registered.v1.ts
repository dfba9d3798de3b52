import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { bytes, digest, id, tokens } from './fields.js';
import { artifactSource } from './artifact-source.js';

export const modelVersionRegisteredV1 = defineEvent({
  type: 'model-version.registered.v1',
  context: 'registry',
  aggregate: 'model-version',
  summary: 'The artifacts were read: a model version is immutable from here on and may be deployed.',
  schema: z.object({
    modelVersionId: id,
    /** Every file with its digest; empty when nothing is pulled. */
    artifacts: z.array(z.object({ path: z.string().max(500), bytes, digest })).max(1_000),
    /** Which source the bytes were really read from. */
    source: artifactSource,
    format: z.enum(['gguf', 'safetensors', 'none', 'onnx']),
    architecture: z.string().max(100).nullable(),
    parameters: z.number().nonnegative().nullable(),
    precision: z.string().max(50).nullable(),
    layers: z.int().nonnegative().nullable(),
    contextTokensMax: tokens,
    memory: z.object({
      weightBytes: bytes,
      kvBytesPerToken: z.number().nonnegative(),
      overheadBytes: bytes,
      /** Where the figures come from. */
      basis: z.enum(['header', 'declared', 'assumed']),
    }),
    capabilities: z.array(z.enum(['chat', 'completions', 'embeddings', 'infer'])).max(10),
    license: z.string().max(200).nullable(),
    /** True for weights that were drawn at random: answers are noise, and everything that lists the model says so. */
    randomWeights: z.boolean(),
  }),
  example: {
    modelVersionId: 'mv_01',
    artifacts: [{ path: 'model.gguf', bytes: 98_000_000, digest: `sha256:${'b'.repeat(64)}` }],
    source: { kind: 'hugging-face', repository: 'org/repo', revision: 'main', files: ['model.gguf'] },
    format: 'gguf',
    architecture: 'llama',
    parameters: 134_515_008,
    precision: 'Q4_1',
    layers: 30,
    contextTokensMax: 2_048,
    memory: { weightBytes: 98_000_000, kvBytesPerToken: 23_040, overheadBytes: 50_000_000, basis: 'header' },
    capabilities: ['chat', 'completions'],
    license: 'apache-2.0',
    randomWeights: false,
  },
});

export type ModelVersionRegisteredV1 = z.infer<typeof modelVersionRegisteredV1.schema>;

import { ADAPTERS_MAX, artifactSource, bytes, digest, endpointAdapter, endpointDeployedV1, engineKind, id, instant, modelName, placementRules, SPLIT_TARGETS_MAX, splitSticky, tokens } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

/** A model version as lists show it. */
export const modelVersionView = z.object({
  modelVersionId: id,
  modelName,
  version: z.string(),
  engine: engineKind,
  status: z.enum(['submitted', 'registered', 'rejected']),
  source: artifactSource,
  totalBytes: bytes,
  digest: digest.nullable(),
  format: z.enum(['gguf', 'safetensors', 'none', 'onnx']).nullable(),
  architecture: z.string().nullable(),
  parameters: z.number().nullable(),
  precision: z.string().nullable(),
  contextTokensMax: tokens.nullable(),
  memoryBytes: bytes.nullable(),
  capabilities: z.array(z.string()),
  license: z.string().nullable(),
  randomWeights: z.boolean(),
  rejection: z.string().nullable(),
  createdAt: instant,
});
export type ModelVersionView = z.infer<typeof modelVersionView>;

export const endpointView = z.object({
  ...endpointDeployedV1.schema.shape,
  rules: placementRules.nullable(),
  adapters: z.array(endpointAdapter).default([]),
  status: z.enum(['active', 'retired']),
  createdAt: instant,
});
export type EndpointView = z.infer<typeof endpointView>;

export const registerModelVersion = defineCommand({
  subject: 'cmd.registry.register-model-version',
  summary: 'Reads the artifacts of a model version and makes it deployable. Answers at once; the reading goes on.',
  request: z.object({
    modelName,
    version: z.string().min(1).max(100),
    engine: engineKind,
    source: artifactSource,
    fallbackSources: z.array(artifactSource).max(8).default([]),
    expectedDigest: digest.nullable().default(null),
    organisationId: id.nullable().default(null),
    license: z.string().max(200).nullable().default(null),
    /** Declared figures for what has no header to read (attached and simulated engines). */
    declared: z.object({ contextTokensMax: tokens.default(4_096), capabilities: z.array(z.enum(['chat', 'completions', 'embeddings', 'infer'])).default(['chat', 'completions']) }).prefault({}),
  }),
  reply: z.object({ modelVersionId: id, status: z.enum(['submitted', 'registered', 'rejected']) }),
});

export const deployEndpoint = defineCommand({
  subject: 'cmd.registry.deploy-endpoint',
  summary: 'Creates an endpoint on a registered (or submitted) model version. Deploying the same name again with the same settings is a no-op.',
  request: endpointDeployedV1.schema.omit({ endpointId: true, engine: true }).extend({
    rules: placementRules.nullable().default(null),
    /** In place of those that it has; null leaves them. */
    adapters: z.array(endpointAdapter).max(ADAPTERS_MAX).nullable().default(null),
  }),
  reply: z.object({ endpointId: id, created: z.boolean(), sequence: z.int() }),
});

export const retireEndpoint = defineCommand({
  subject: 'cmd.registry.retire-endpoint',
  summary: 'Takes an endpoint out of service; its replicas drain and stop.',
  request: z.object({ endpointId: id, reason: z.string().max(500) }),
  reply: z.object({ endpointId: id }),
});

export const setTrafficSplit = defineCommand({
  subject: 'cmd.registry.set-traffic-split',
  summary: 'Spreads the requests for a name over endpoints by weight, in place of the split that it had.',
  request: z.object({
    name: modelName,
    organisationId: id.nullable(),
    /** Each endpoint by its id or its name. */
    targets: z.array(z.object({ endpoint: z.string().min(1).max(200), weight: z.int().min(0).max(1_000_000) })).min(1).max(SPLIT_TARGETS_MAX),
    sticky: splitSticky,
    reason: z.string().max(500),
  }),
  reply: z.object({ splitId: id, sequence: z.int() }),
});

export const removeTrafficSplit = defineCommand({
  subject: 'cmd.registry.remove-traffic-split',
  summary: 'Takes the split of a name away: the name is the endpoint that is called so again.',
  request: z.object({ splitId: id, reason: z.string().max(500) }),
  reply: z.object({ splitId: id, sequence: z.int() }),
});

export const listModelVersions = defineCommand({
  subject: 'qry.registry.model-versions',
  summary: 'Model versions, newest first.',
  request: z.object({ modelName: modelName.optional(), limit: z.int().min(1).max(1_000).default(100) }),
  reply: z.object({ modelVersions: z.array(modelVersionView) }),
});

export const listEndpoints = defineCommand({
  subject: 'qry.registry.endpoints',
  summary: 'Endpoints, newest first, retired ones only when asked for.',
  request: z.object({ includeRetired: z.boolean().default(false), limit: z.int().min(1).max(10_000).default(1_000) }),
  reply: z.object({ endpoints: z.array(endpointView) }),
});

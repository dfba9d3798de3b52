import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { engineKind, id, modelName } from './fields.js';

export const endpointDeployedV1 = defineEvent({
  type: 'endpoint.deployed.v1',
  context: 'registry',
  aggregate: 'endpoint',
  summary: 'An endpoint was created: the name customers call, what serves it and how far it may scale.',
  schema: z.object({
    endpointId: id,
    /** The public model name that requests carry. */
    name: modelName,
    modelVersionId: id,
    engine: engineKind,
    /** The organisation that may call it; null for every organisation. */
    organisationId: id.nullable(),
    hardware: z.object({
      /** `cpu`, or a GPU type of the catalogue such as `h100`; null lets the scheduler choose. */
      acceleratorType: z.string().max(50).nullable(),
      acceleratorCount: z.int().min(1).max(64),
    }),
    scaling: z.object({
      minReplicas: z.int().min(0).max(1_000),
      maxReplicas: z.int().min(1).max(1_000),
      scaleToZeroAfterIdleSeconds: z.int().min(1).max(2_592_000).nullable(),
    }),
    serving: z.object({
      /** Requests one replica works on at once. */
      slotsPerReplica: z.int().min(1).max(1_024),
      /** Tokens of prompt and answer together that one request may use. */
      contextTokens: z.int().min(1),
      /** Requests that may wait for a slot; one more is refused. */
      queueMax: z.int().min(0).max(100_000),
      queueWaitMsMax: z.int().min(0).max(600_000),
    }),
    /** Engine settings that are not ours to understand, passed to its start. */
    engineOptions: z.record(z.string().max(100), z.union([z.string().max(1_000), z.number(), z.boolean()])),
  }),
  example: {
    endpointId: 'ep_01',
    name: 'smollm2-135m-instruct',
    modelVersionId: 'mv_01',
    engine: 'llama.cpp',
    organisationId: null,
    hardware: { acceleratorType: 'cpu', acceleratorCount: 1 },
    scaling: { minReplicas: 1, maxReplicas: 2, scaleToZeroAfterIdleSeconds: null },
    serving: { slotsPerReplica: 4, contextTokens: 2_048, queueMax: 64, queueWaitMsMax: 30_000 },
    engineOptions: {},
  },
});

export type EndpointDeployedV1 = z.infer<typeof endpointDeployedV1.schema>;

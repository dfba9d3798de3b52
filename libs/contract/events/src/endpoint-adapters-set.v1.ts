import { z } from 'zod';
import { artifactSource } from './artifact-source.js';
import { defineEvent } from './define-event.js';
import { adapterName, id } from './fields.js';

/** Adapters of one endpoint. */
export const ADAPTERS_MAX = 256;

/** A LoRA adapter on the model of an endpoint. */
export const endpointAdapter = z.object({
  /** What requests call it behind the endpoint's name and a colon, and what its engine knows it by. */
  name: adapterName,
  /** Where its weights are; null where the engine has them already. */
  source: artifactSource.nullable(),
});
export type EndpointAdapter = z.infer<typeof endpointAdapter>;

export const endpointAdaptersSetV1 = defineEvent({
  type: 'endpoint.adapters-set.v1',
  context: 'registry',
  aggregate: 'endpoint',
  summary: 'The adapters that requests to an endpoint may name were set, in place of those before.',
  schema: z.object({ endpointId: id, adapters: z.array(endpointAdapter).max(ADAPTERS_MAX) }),
  example: { endpointId: 'ep_01', adapters: [{ name: 'sql', source: { kind: 'hugging-face', repository: 'owner/sql-lora', revision: 'main', files: [] } }, { name: 'support', source: null }] },
});

export type EndpointAdaptersSetV1 = z.infer<typeof endpointAdaptersSetV1.schema>;

import { endpointView, modelVersionView, nodeView, projectionVerification, replicaView } from '@penstock/contract-commands';
import { z } from 'zod';
import { keyScopes } from './route-scope.js';

export const createOrganisationRequest = z.strictObject({ name: z.string().min(1).max(200) });
export const organisationBody = z.object({ id: z.string(), name: z.string(), created_at: z.int(), suspended_at: z.int().nullable() });
export const suspensionRequest = z.strictObject({ /** For whoever reads the log later. */ reason: z.string().min(1).max(500) });
export const organisationList = z.object({ data: z.array(organisationBody) });

export const createProjectRequest = z.strictObject({ organisation_id: z.string(), name: z.string().min(1).max(200) });
export const projectBody = z.object({ id: z.string(), organisation_id: z.string(), name: z.string(), created_at: z.int() });
export const projectList = z.object({ data: z.array(projectBody) });

export const createKeyRequest = z.strictObject({
  name: z.string().min(1).max(200),
  /** Left out: the key's project is the default one of the caller's organisation. */
  project_id: z.string().max(128).optional(),
  kind: z.enum(['inference', 'admin']).default('inference'),
  models: z.array(z.string().max(200)).max(1_000).nullable().default(null),
  expires_at: z.iso.datetime().nullable().default(null),
  /** What the key may do; null allows everything that its kind opens. */
  scopes: z.array(z.enum(keyScopes)).min(1).max(keyScopes.length).nullable().default(null),
  /** The service account that the key is for; its project is the key's. */
  service_account_id: z.string().max(128).nullable().default(null),
});
export const keyBody = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['inference', 'admin']),
  organisation_id: z.string(),
  project_id: z.string(),
  /** As in `sk-ps-Ab3d…x9Yz`. */
  redacted: z.string(),
  models: z.array(z.string()).nullable(),
  created_at: z.int(),
  expires_at: z.int().nullable(),
  revoked_at: z.int().nullable(),
  scopes: z.array(z.string()).nullable().default(null),
  service_account_id: z.string().nullable().default(null),
  /** The key that took its place. */
  replaced_by: z.string().nullable().default(null),
  /** To the hour or so; null for a key that was not used yet. */
  last_used_at: z.int().nullable().default(null),
});
/** The only time the key itself is shown. */
export const createdKeyBody = keyBody.extend({ key: z.string() });
export const rotateKeyRequest = z.strictObject({
  /** How long the old key works beside the new one; at most 30 days. */
  overlap_seconds: z.int().min(0).max(30 * 86_400).default(86_400),
  /** When the new key expires; null for never. */
  expires_at: z.iso.datetime().nullable().default(null),
});
export const keyList = z.object({ data: z.array(keyBody) });

export const createServiceAccountRequest = z.strictObject({
  name: z.string().min(1).max(200),
  /** The default project of the caller's organisation when left out. */
  project_id: z.string().max(128).optional(),
});
export const serviceAccountBody = z.object({ id: z.string(), name: z.string(), organisation_id: z.string(), project_id: z.string(), created_at: z.int(), disabled_at: z.int().nullable() });
export const serviceAccountList = z.object({ data: z.array(serviceAccountBody) });

const limitAmount = z.int().min(1).max(1_000_000_000_000).nullable().default(null);
/** Sets all limits of one subject and model; what is left out or null is not limited. */
export const setLimitsRequest = z.strictObject({
  /** The id of an organisation, a project or a key. */
  subject_id: z.string().max(128),
  /** One model; null for what all models may use together. */
  model: z.string().max(200).nullable().default(null),
  requests_per_minute: limitAmount,
  tokens_per_minute: limitAmount,
  concurrency: limitAmount,
  context_tokens_max: limitAmount,
  priority_tier: z.enum(['reserved', 'paid', 'best-effort', 'batch']).nullable().default(null),
});
export const limitsBody = z.object({
  subject: z.enum(['organisation', 'project', 'key']),
  subject_id: z.string(),
  organisation_id: z.string(),
  model: z.string().nullable(),
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.int().nullable(),
  concurrency: z.int().nullable(),
  context_tokens_max: z.int().nullable(),
  priority_tier: z.string().nullable(),
});
export const limitsList = z.object({ data: z.array(limitsBody) });
export const limitsQuery = z.object({ subject_id: z.string().max(128).optional(), limit: z.coerce.number().int().min(1).max(10_000).default(1_000) });

export const modelVersionList = z.object({ data: z.array(modelVersionView) });
export const endpointList = z.object({ data: z.array(endpointView) });
export const fleetBody = z.object({ nodes: z.array(nodeView), replicas: z.array(replicaView) });

/** Why a node is closed, opened or emptied: it is told to everybody who asks later. */
export const nodeOperationRequest = z.strictObject({ reason: z.string().min(1).max(500).default('asked for by an operator') });
export const reclaimRequest = nodeOperationRequest.extend({
  /** Seconds until the owner of the machine takes it back. */
  in_seconds: z.int().min(0).max(86_400).default(120),
});
export const nodeOperationBody = z.object({ node: nodeView });

export const eventsQuery = z.object({
  context: z.enum(['access', 'registry', 'fleet', 'scaling', 'routing', 'usage', 'billing', 'batch']).optional(),
  aggregate: z.string().max(128).optional(),
  id: z.string().max(128).optional(),
  from_sequence: z.coerce.number().int().min(1).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  /** `true` answers an endless `text/event-stream`. */
  follow: z.enum(['true', 'false']).default('false'),
});
export const eventBody = z.object({
  id: z.string(),
  type: z.string(),
  source: z.string(),
  time: z.string(),
  subject: z.string(),
  stream: z.string(),
  sequence: z.int(),
  correlation_id: z.string(),
  causation_id: z.string(),
  traceparent: z.string().nullable(),
  data: z.unknown(),
});
export type EventBody = z.infer<typeof eventBody>;
export const eventList = z.object({ data: z.array(eventBody), has_more: z.boolean() });

export const verifyRequest = z.strictObject({ swap: z.boolean().default(false) });
export const verifyBody = z.object({
  identical: z.boolean(),
  projections: z.array(projectionVerification),
  /** Owners that did not answer. */
  unavailable: z.array(z.string()),
});

export const deadLetterBody = z.object({
  id: z.string(),
  stream: z.string(),
  sequence: z.int(),
  consumer: z.string(),
  type: z.string().nullable(),
  reason: z.string(),
  deliveries: z.int(),
  at: z.string(),
});
export const deadLetterList = z.object({ data: z.array(deadLetterBody) });
export const redriveRequest = z.strictObject({ ids: z.array(z.string().max(200)).min(1).max(1_000).optional() });
export const redriveBody = z.object({ redriven: z.int() });

export const progressQuery = z.object({ endpoint_id: z.string().max(128) });
/** One step of a start: a phase of a replica, or the bytes of a pull. Streamed as `text/event-stream`. */
export const progressBody = z.object({
  kind: z.enum(['wanted', 'phase', 'pull', 'refused']),
  endpoint_id: z.string(),
  replica_id: z.string().nullable(),
  phase: z.string().nullable(),
  file: z.string().nullable(),
  completed_bytes: z.int().nullable(),
  total_bytes: z.int().nullable(),
  /** Why it failed or was refused. */
  reason: z.string().nullable(),
});
export type ProgressBody = z.infer<typeof progressBody>;

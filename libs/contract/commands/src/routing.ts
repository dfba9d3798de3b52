import { engineKind, id, modelName } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

/** The right to use one slot of one replica until it is released or expires. */
export const lease = z.object({
  leaseId: id,
  endpointId: id,
  replicaId: id,
  modelVersionId: id,
  url: z.string(),
  engine: engineKind,
  /** The model name to put into the engine's request. */
  servedModel: z.string(),
  /** Milliseconds since the epoch; a gateway that still works renews before. */
  expiresAtMs: z.number(),
  /** How long the request waited in the queue. */
  queuedMs: z.number().nonnegative(),
  /** True when no replica was ready and the request waited for a start. */
  coldStart: z.boolean(),
});
export type Lease = z.infer<typeof lease>;

export const admitRequest = defineCommand({
  subject: 'cmd.router.admit',
  summary: 'Asks for a slot. Waits in a bounded queue, and through a cold start, at most `waitMsMax`; the reply is a lease or a refusal.',
  request: z.object({
    requestId: id,
    gatewayId: id,
    organisationId: id,
    endpointId: id,
    modelName,
    /** Replicas that already failed this request. */
    excludedReplicaIds: z.array(id).max(16).default([]),
    promptTokensEstimate: z.int().nonnegative().default(0),
    waitMsMax: z.int().nonnegative().max(600_000),
  }),
  reply: lease,
});

/** Published, not requested: gives slots back and tells how the requests ended. Sent in micro-batches. */
export const releaseLeases = defineCommand({
  subject: 'cmd.router.release',
  summary: 'Gives slots back, with the outcome that health is judged by.',
  request: z.object({
    releases: z.array(z.object({ leaseId: id, replicaId: id, endpointId: id, outcome: z.enum(['ok', 'aborted', 'engine-failed']) })).min(1).max(1_000),
  }),
  reply: z.object({ released: z.int() }),
});

/** Keeps the leases of long requests; also how a router that restarted learns what is in flight. */
export const renewLeases = defineCommand({
  subject: 'cmd.router.renew',
  summary: 'Extends leases, and tells a router that restarted what is in flight.',
  request: z.object({ gatewayId: id, leases: z.array(lease).max(10_000) }),
  reply: z.object({ renewed: z.int() }),
});

export const cancelAdmission = defineCommand({
  subject: 'cmd.router.cancel',
  summary: 'The client went away while its request waited.',
  request: z.object({ requestId: id, endpointId: id }),
  reply: z.object({ cancelled: z.boolean() }),
});

/**
 * Body of the live signal `tele.router.<instanceId>`, sent every second and at each change of membership. Endpoints are spread over the
 * instances that are heard. A gateway that hears an instance for the first time, or with a new `startedAtMs`, renews its leases at once.
 */
export const routerPresence = z.object({
  instanceId: id,
  sentAtMs: z.number(),
  startedAtMs: z.number(),
  /** True in the last one: the instance takes no more requests. */
  isLeaving: z.boolean(),
});
export type RouterPresence = z.infer<typeof routerPresence>;

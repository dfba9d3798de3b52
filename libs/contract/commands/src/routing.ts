import { adapterName, engineKind, id, modelName } from '@penstock/contract-events';
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

/** Keys of the blocks of one prompt that travel with a request. */
const PROMPT_BLOCKS_MAX = 256;

/** What a router may know of a prompt: no text, and keys that a secret of the tenant is mixed into. */
const promptTrail = z.object({
  /** Estimated tokens of the prompt. */
  tokens: z.int().nonnegative(),
  /** A key for each full block, which stands for the block and all before it. */
  blocks: z.array(z.int().nonnegative()).max(PROMPT_BLOCKS_MAX),
  /** The key of the session that the request belongs to; null when it names none. */
  session: z.int().nonnegative().nullable(),
});

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
    /** Tokens that the answer may have at most; with the prompt, what the request may need of a KV cache. */
    answerTokensMax: z.int().nonnegative().default(0),
    /** A class is served before those after it. */
    priority: z.enum(['reserved', 'paid', 'best-effort', 'batch']).default('paid'),
    /** The tenant's share against others of the same class. */
    weight: z.number().positive().max(1_000).default(1),
    /** Left out by senders that do not choose by prompts. */
    prompt: promptTrail.optional(),
    /** The adapter that the request names, as engines know it. */
    adapter: adapterName.optional(),
    waitMsMax: z.int().nonnegative().max(600_000),
  }),
  reply: lease,
});

/** Gives slots back and tells how the requests ended. Sent in micro-batches. */
export const releaseLeases = defineCommand({
  subject: 'cmd.router.release',
  summary: 'Gives slots back, with the outcome that health is judged by.',
  request: z.object({
    releases: z.array(z.object({ leaseId: id, replicaId: id, endpointId: id, outcome: z.enum(['ok', 'aborted', 'engine-failed']), /** Of a failure: no token came in time. */ timedOut: z.boolean().default(false) })).min(1).max(1_000),
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

const replicaReport = z.object({
  replicaId: id,
  /** Slots that the gateway may fill. */
  slots: z.int().nonnegative(),
  /** Slots that its requests hold now; more than `slots` after those were recalled. */
  inUse: z.int().nonnegative(),
  /** Tokens of the KV cache that it may fill; 0 where the size of the cache is not known. */
  tokens: z.int().nonnegative(),
  tokensInUse: z.int().nonnegative(),
  /** Requests that ended well since the last report, that failed, and that failed after the last one that ended well. */
  ok: z.int().nonnegative(),
  failed: z.int().nonnegative(),
  failedLast: z.int().nonnegative(),
  /** Of `failedLast`, those that got no token in time. */
  timedOutLast: z.int().nonnegative().default(0),
});
export type ReplicaReport = z.infer<typeof replicaReport>;

const loanReport = z.object({
  endpointId: id,
  /** Counts up with every report of a gateway on an endpoint, over its restarts too. */
  sequence: z.int().positive(),
  /** Slots that the gateway would like to hold ahead of its requests. */
  wantedSlots: z.int().nonnegative().max(100_000),
  /** Requests since the last report. */
  requests: z.int().nonnegative(),
  replicas: z.array(replicaReport).max(1_000),
});
export type LoanReport = z.infer<typeof loanReport>;

const replicaLoan = lease.pick({ replicaId: true, modelVersionId: true, url: true, engine: true, servedModel: true }).extend({
  slots: z.int().positive(),
  /** Tokens of the KV cache that the gateway may fill, of those that the cache holds; null when its size is not known. */
  tokens: z.int().nonnegative().nullable(),
  kvTokens: z.int().positive().nullable(),
});
export type ReplicaLoan = z.infer<typeof replicaLoan>;

export const borrowSlots = defineCommand({
  subject: 'cmd.router.borrow',
  summary: 'Reports the slots that a gateway holds ahead of its requests, and asks which it may hold from now on.',
  request: z.object({ gatewayId: id, reports: z.array(loanReport).min(1).max(500) }),
  /** Endpoints that are missing have no owner at the moment: what was lent before stays lent until it expires. */
  reply: z.object({ endpoints: z.array(z.object({ endpointId: id, loans: z.array(replicaLoan) })) }),
});

/** Body of the live signal `tele.recall.<endpointId>`: requests wait at the router, so gateways give back what they do not use. */
export const slotRecall = z.object({ endpointId: id });

/**
 * Body of the live signal `tele.prompts.<tellerId>`, sent by gateways and routers several times a second while they choose between
 * replicas: which prompts went where, by the keys of their blocks, and how many tokens of them there are to compute.
 */
export const promptNews = z.object({
  tellerId: id,
  endpoints: z.array(z.object({
    endpointId: id,
    replicas: z.array(z.object({ replicaId: id, tokens: z.int().nonnegative(), prompts: z.array(z.array(z.int().nonnegative()).max(PROMPT_BLOCKS_MAX)).max(2_000) })).max(2_000),
  })).max(2_000),
});
export type PromptNewsMessage = z.infer<typeof promptNews>;

/** Adapters that one report names. */
const REPORTED_ADAPTERS_MAX = 1_024;
const reportedAdapters = z.array(z.string().min(1).max(500)).max(REPORTED_ADAPTERS_MAX);

/** Body of the live signal `tele.adapters.<replicaId>`, sent every second while an engine with LoRA adapters runs. */
export const adapterReport = z.object({
  replicaId: id,
  endpointId: id,
  sentAtMs: z.number(),
  /** What requests may name as their model beside the base model; null when the engine did not say. */
  served: reportedAdapters.nullable(),
  /** Adapters of requests that run or wait in the engine. */
  active: reportedAdapters,
  /** Adapters that its accelerator holds at once; null when the engine did not say. */
  slots: z.int().positive().nullable(),
});
export type AdapterReport = z.infer<typeof adapterReport>;

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

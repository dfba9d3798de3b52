import { committedCapacity, id, instant, milliseconds, reservationRefusedV1, serviceLevel, tokens } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

/** Reservations that one list tells. */
export const RESERVATIONS_LISTED_MAX = 1_000;

export const reservationView = z.object({
  reservationId: id,
  level: serviceLevel,
  /** `planned` before its replicas start, `in-force` until it ends; the others are over. */
  status: z.enum(['planned', 'in-force', 'released', 'expired', 'refused']),
  /** null for a refused one. */
  capacity: committedCapacity.nullable(),
  reason: z.string(),
  /** Replicas of its endpoint that take traffic now. */
  ready: z.int().nonnegative(),
  /** Replicas that all promises on its endpoint keep there now; 0 while none is in force. */
  floor: z.int().nonnegative(),
  wouldFit: reservationRefusedV1.schema.shape.wouldFit,
});
export type ReservationView = z.infer<typeof reservationView>;

export const makeReservation = defineCommand({
  subject: 'cmd.scheduler.make-reservation',
  summary: 'Turns a service level into capacity and sets it aside, or refuses it and says what would fit. Both are told in the log.',
  request: z.object({
    level: serviceLevel.extend({
      /** null begins now. */
      from: instant.nullable(),
      /** null takes the objective of the class. */
      ttftMs: milliseconds.nullable(),
      itlMs: milliseconds.nullable(),
    }),
  }),
  reply: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('made'), reservation: reservationView }),
    z.object({ kind: z.literal('refused'), refusal: reservationRefusedV1.schema }),
  ]),
});

export const releaseReservation = defineCommand({
  subject: 'cmd.scheduler.release-reservation',
  summary: 'Ends a reservation: its replicas become best effort.',
  request: z.object({ reservationId: id, reason: z.string().max(500) }),
  reply: z.object({ reservationId: id }),
});

export const listReservations = defineCommand({
  subject: 'qry.scheduler.reservations',
  summary: 'Reservations, the newest first; those that are over and the refused ones only when asked for.',
  request: z.object({ includeEnded: z.boolean().default(false), limit: z.int().min(1).max(RESERVATIONS_LISTED_MAX).default(RESERVATIONS_LISTED_MAX) }),
  reply: z.object({ reservations: z.array(reservationView) }),
});

const plannedSeat = z.object({
  gpuType: z.string(),
  precision: z.string(),
  members: z.array(z.object({ nodeId: z.string(), gpus: z.array(z.int()) })),
  migProfile: z.string().nullable(),
  computeMilli: z.number(),
});

const plannedCost = z.object({ dollarsPerHour: z.number(), lowerBoundDollarsPerHour: z.number(), gpusInUse: z.int(), gpus: z.int() });

/** What would become of the fleet. Nothing was changed. */
export const changePlan = z.object({
  fits: z.boolean(),
  placed: z.array(plannedSeat),
  moves: z.array(plannedSeat.extend({ replicaId: id, endpointId: id, fromNodeIds: z.array(z.string()) })),
  refused: z.array(z.object({ endpointId: z.string(), replicaId: id.nullable(), reason: z.string() })),
  brokenReservations: z.array(id),
  before: plannedCost,
  after: plannedCost,
});

const figureSource = z.enum(['estimated', 'published', 'measured']);

const advisedWay = z.object({
  gpuType: z.string(),
  precision: z.string(),
  replicas: z.int(),
  gpus: z.number(),
  dollarsPerHour: z.number(),
  figuresFrom: figureSource,
  /** null for the precision as it is, and where nobody published anything. */
  quality: z.object({ lossPercent: z.number(), benchmark: z.string(), source: z.string() }).nullable(),
});

/** Which precision and hardware would be cheapest within the objective. */
export const deploymentAdvice = z.object({
  /** `unknown` where too little is known of the model; `says` then names what is missing. */
  kind: z.enum(['better', 'keep', 'unreachable', 'unknown']),
  current: advisedWay.nullable(),
  best: advisedWay.nullable(),
  savedDollarsPerHour: z.number(),
  savedPercent: z.number(),
  others: z.array(advisedWay),
  /** What is not advised although it would be cheaper, and why. */
  vetoes: z.array(z.object({ what: z.enum(['quantisation', 'hardware']), reason: z.string() })),
  says: z.string(),
});
export type DeploymentAdviceView = z.infer<typeof deploymentAdvice>;

/** A deployment that is only thought of. What is null is left to the planner. */
export const imaginedDeployment = z.object({
  /** An endpoint or a registered model by name, a model version by id, or the repository of a well-known model. */
  model: z.string().min(1).max(200),
  /** Whose endpoint the name is looked up for; null for those that are for everybody. */
  organisationId: id.nullable().default(null),
  gpuType: z.string().min(1).max(50).nullable().default(null),
  gpuCount: z.int().min(1).max(64).nullable().default(null),
  precision: z.string().min(1).max(50).nullable().default(null),
  /** null takes what `replicas` of the deployment as it is carry. */
  requestsPerS: z.number().positive().max(1_000_000).nullable().default(null),
  replicas: z.int().min(1).max(1_000).default(1),
  promptTokens: tokens.default(1_000),
  completionTokens: tokens.default(200),
  latencyClass: serviceLevel.shape.latencyClass.default('interactive'),
  ttftMs: milliseconds.nullable().default(null),
  itlMs: milliseconds.nullable().default(null),
  allowsSpot: z.boolean().default(false),
  /** The same request is to give the same bits: nothing is advised that changes them. */
  isExact: z.boolean().default(false),
});

const profileTold = z.object({
  gpuType: z.string(),
  slice: z.string().nullable(),
  tensorParallel: z.int(),
  precision: z.string(),
  /** null where nobody knows: of a replica that was only measured, and whose engine does not say. */
  weightBytes: z.object({ value: z.number(), from: figureSource, source: z.string() }).nullable(),
  kvTokens: z.object({ value: z.number(), from: figureSource, source: z.string() }).nullable(),
  /** null where no point keeps the objective. */
  knee: z.object({ concurrency: z.int(), requestsPerS: z.number(), ttftMs: z.number(), itlMs: z.number(), from: figureSource, source: z.string() }).nullable(),
});

export const planDeployment = defineCommand({
  subject: 'qry.scheduler.plan-deployment',
  summary: 'What a deployment would take, cost and move on the fleet as it is, and what would be cheaper. Changes nothing.',
  request: imaginedDeployment,
  reply: z.object({
    plan: changePlan,
    requestsPerS: z.number(),
    /** The same request is to give the same bits, by the question or as the endpoint is deployed. */
    isExact: z.boolean(),
    profiles: z.array(profileTold),
    advice: deploymentAdvice,
  }),
});

export const adviseDeployment = defineCommand({
  subject: 'qry.scheduler.advise-deployment',
  summary: 'Which precision and hardware would serve a deployment for the fewest dollars.',
  request: imaginedDeployment,
  reply: z.object({ advice: deploymentAdvice }),
});

export const planNodes = defineCommand({
  subject: 'qry.scheduler.plan-nodes',
  summary: 'What would become of the fleet if nodes came, went or were lost. Changes nothing.',
  request: z.object({
    /** Such as `4xH100` for GPUs or `2xhgx-8xH100-SXM` for nodes of a shape. */
    add: z.array(z.string().min(1).max(100)).max(50).default([]),
    removeNodeIds: z.array(id).max(1_000).default([]),
    loseDomains: z.array(z.string().min(1).max(200)).max(100).default([]),
  }),
  reply: z.object({ plan: changePlan, added: z.array(z.string()) }),
});

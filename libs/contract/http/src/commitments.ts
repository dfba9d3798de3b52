import { changePlan, deploymentAdvice, imaginedDeployment, planDeployment, reservationView } from '@penstock/contract-commands';
import { z } from 'zod';

const instantOrNull = z.iso.datetime().nullable().default(null);
const rate = z.number().nonnegative().max(1_000_000_000).default(0);

/** Asks for capacity to be set aside. Give rates, or a number of replicas. */
export const createReservationRequest = z.strictObject({
  /** An endpoint by id, or by the name that requests carry. */
  endpoint: z.string().min(1).max(200),
  /** The tenant that it is promised to; null for everybody who calls the endpoint. */
  organisation_id: z.string().max(128).nullable().default(null),
  requests_per_s: rate,
  /** Prompt and completion tokens together. */
  tokens_per_s: rate,
  replicas: z.int().min(0).max(1_000).default(0),
  prompt_tokens: z.int().min(0).max(10_000_000).default(1_000),
  completion_tokens: z.int().min(0).max(10_000_000).default(200),
  latency_class: z.enum(['interactive', 'standard', 'batch']).default('interactive'),
  /** Milliseconds; null takes those of the class. */
  ttft_ms: z.number().nonnegative().max(3_600_000).nullable().default(null),
  itl_ms: z.number().nonnegative().max(600_000).nullable().default(null),
  /** 0 to 1000: higher ones are placed first and preempted last. */
  priority: z.int().min(0).max(1_000).default(500),
  gpu_type: z.string().min(1).max(50).nullable().default(null),
  tolerates: z.enum(['nothing', 'replica', 'failure-domain']).default('nothing'),
  /** null begins now. */
  from: instantOrNull,
  /** null has no end. */
  to: instantOrNull,
});
export type CreateReservationRequest = z.infer<typeof createReservationRequest>;

export const reservationBody = reservationView;
export const reservationList = z.object({ data: z.array(reservationView) });
export const reservationsQuery = z.object({ include_ended: z.enum(['true', 'false']).default('false'), limit: z.coerce.number().int().min(1).max(1_000).default(1_000) });
export const reservationReleased = z.object({ reservation_id: z.string() });

const imagined = imaginedDeployment.shape;

/** A dry run: `deployment` or `nodes`, one of them. */
export const createPlanRequest = z.strictObject({
  deployment: z.strictObject({
    model: imagined.model,
    gpu_type: imagined.gpuType,
    gpu_count: imagined.gpuCount,
    precision: imagined.precision,
    requests_per_s: imagined.requestsPerS,
    replicas: imagined.replicas,
    prompt_tokens: imagined.promptTokens,
    completion_tokens: imagined.completionTokens,
    latency_class: imagined.latencyClass,
    ttft_ms: imagined.ttftMs,
    itl_ms: imagined.itlMs,
    allows_spot: imagined.allowsSpot,
    /** The same request is to give the same bits: nothing is advised that changes them. */
    exact: imagined.isExact,
  }).optional(),
  nodes: z.strictObject({
    /** Such as `4xH100` for GPUs or `2xhgx-8xH100-SXM` for nodes of a shape. */
    add: z.array(z.string().min(1).max(100)).max(50).default([]),
    remove: z.array(z.string().min(1).max(128)).max(1_000).default([]),
    /** Failure domains. */
    lose: z.array(z.string().min(1).max(200)).max(100).default([]),
  }).optional(),
});
export type CreatePlanRequest = z.infer<typeof createPlanRequest>;

export const planBody = z.object({
  plan: changePlan,
  /** Nodes that were imagined, by shape. */
  added: z.array(z.string()),
  /** What the deployment was planned for; null for a change of nodes. */
  requests_per_s: z.number().nullable(),
  /** The deployment is to give the same bits for the same request; null for a change of nodes. */
  exact: z.boolean().nullable(),
  profiles: planDeployment.reply.shape.profiles,
  advice: deploymentAdvice.nullable(),
});
export type PlanBody = z.infer<typeof planBody>;

import { z } from 'zod';
import { id, instant, milliseconds, tokens } from './fields.js';

/** How soon callers need an answer. Each class has an objective that a service level may tighten or loosen. */
export const latencyClass = z.enum(['interactive', 'standard', 'batch']);
export type LatencyClass = z.infer<typeof latencyClass>;

/** What may fail while the promised rate is still carried. */
export const toleratedLoss = z.enum(['nothing', 'replica', 'failure-domain']);
export type ToleratedLoss = z.infer<typeof toleratedLoss>;

/** What somebody is promised of an endpoint. */
export const serviceLevel = z.object({
  endpointId: id,
  /** The tenant that it is promised to; null for everybody who calls the endpoint. */
  organisationId: id.nullable(),
  /** The larger of both rates counts; 0 leaves one out. */
  requestsPerS: z.number().nonnegative().max(1_000_000),
  /** Prompt and completion tokens together. */
  tokensPerS: z.number().nonnegative().max(1_000_000_000),
  /** Replicas by number, where no profile can turn a rate into them; 0 takes the rates. */
  replicas: z.int().min(0).max(1_000),
  /** Tokens of a typical request. */
  promptTokens: tokens,
  completionTokens: tokens,
  latencyClass,
  /** The objective, as it was agreed. */
  ttftMs: milliseconds,
  itlMs: milliseconds,
  /** Higher ones are placed first and preempted last. */
  priority: z.int().min(0).max(1_000),
  /** Only this type of GPU; null takes the cheapest that keeps the objective. */
  gpuType: z.string().max(50).nullable(),
  tolerates: toleratedLoss,
  from: instant,
  /** null has no end. */
  to: instant.nullable(),
});
export type ServiceLevel = z.infer<typeof serviceLevel>;

/** One kind of replica that is set aside, and how many. Amounts are of one replica. */
const committedPart = z.object({
  count: z.int().min(1).max(1_000),
  accelerators: z.int().min(1).max(1_024),
  nodes: z.int().min(1).max(128),
  /** Of each accelerator, in thousandths. */
  computeMilli: z.int().nonnegative(),
  /** Of each accelerator, in MiB. */
  vramMib: z.number().nonnegative(),
  migProfile: z.string().max(50).nullable(),
  cpuMilli: z.number().nonnegative(),
  hostMemoryMib: z.number().nonnegative(),
});

/** What a promise takes of the fleet. */
export const committedCapacity = z.object({
  gpuType: z.string().max(50),
  sharing: z.enum(['shares', 'mig', 'whole']),
  precision: z.string().max(50),
  parts: z.array(committedPart).min(1).max(16),
  /** What all of it carries within the objective; null where it was given by the number of replicas. */
  requestsPerS: z.number().nonnegative().nullable(),
  /** More replicas than this never stand in one failure domain; null leaves it to the planner. */
  perDomainMax: z.int().min(1).nullable(),
  /** How long before `from` replicas begin to start, in seconds. */
  leadSeconds: z.number().nonnegative().max(86_400),
  /** null where the price of the hardware is not known. */
  dollarsPerHour: z.number().nonnegative().nullable(),
  /** The weakest origin of the figures that it rests on. */
  figuresFrom: z.enum(['estimated', 'published', 'measured', 'declared']),
});
export type CommittedCapacity = z.infer<typeof committedCapacity>;

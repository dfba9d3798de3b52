import { id, instant, wantedReplicasChangedV1 } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

export const wakeEndpoint = defineCommand({
  subject: 'cmd.autoscaler.wake-endpoint',
  summary: 'A request waits at an endpoint with no replica: want at least one. Many wakes at once cause one start.',
  request: z.object({ endpointId: id, waiting: z.int().nonnegative() }),
  reply: z.object({ wantedReplicas: z.int() }),
});

export const listScalingDecisions = defineCommand({
  subject: 'qry.autoscaler.decisions',
  summary: 'Scaling decisions with the rule that fired and the figures it saw, newest first.',
  request: z.object({ endpointId: id.optional(), limit: z.int().min(1).max(1_000).default(50) }),
  reply: z.object({ decisions: z.array(z.object({ ...wantedReplicasChangedV1.schema.shape, decidedAt: instant })) }),
});

/** Body of the live signal `tele.endpoint.<endpointId>`, sent each second by the router that owns the endpoint. */
export const endpointLoad = z.object({
  endpointId: id,
  sentAtMs: z.number(),
  waiting: z.int().nonnegative(),
  running: z.int().nonnegative(),
  /** Time of the newest request, in milliseconds since the epoch; null when there was none since the router started. */
  lastRequestAtMs: z.number().nullable(),
});
export type EndpointLoad = z.infer<typeof endpointLoad>;

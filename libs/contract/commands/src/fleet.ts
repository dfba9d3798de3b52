import { bytes, engineKind, id, instant, nodeJoinedV2, replicaPlacedV2 } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

export const replicaPhase = z.enum(['placed', 'pulling', 'loading', 'warming', 'ready', 'draining', 'stopped', 'failed']);
export type ReplicaPhase = z.infer<typeof replicaPhase>;

export const replicaView = z.object({
  replicaId: id,
  endpointId: id,
  modelVersionId: id,
  nodeId: id,
  acceleratorIds: z.array(id),
  /** Every node of it with the accelerators there, the leading one first. */
  members: replicaPlacedV2.schema.shape.members,
  reservedBytes: bytes,
  computeMilli: z.int(),
  mig: replicaPlacedV2.schema.shape.mig,
  option: replicaPlacedV2.schema.shape.option,
  replaces: id.nullable(),
  phase: replicaPhase,
  url: z.string().nullable(),
  engine: engineKind.nullable(),
  slots: z.int().nullable(),
  placementReason: replicaPlacedV2.schema.shape.reason,
  /** Why it drained, stopped or failed. */
  reason: z.string().nullable(),
  phaseSince: instant,
  createdAt: instant,
});
export type ReplicaView = z.infer<typeof replicaView>;

export const nodeView = z.object({
  ...nodeJoinedV2.schema.shape,
  /** Why it takes nothing new, why it is to become empty, and when its owner takes it back; null where that is not so. */
  cordonReason: z.string().nullable(),
  drainReason: z.string().nullable(),
  reclaimAt: instant.nullable(),
  status: z.enum(['up', 'lost']),
  statusReason: z.string().nullable(),
  joinedAt: instant,
});
export type NodeView = z.infer<typeof nodeView>;

export const getFleet = defineCommand({
  subject: 'qry.scheduler.fleet',
  summary: 'Nodes with their accelerators, and replicas with phase and reason; ended replicas only when asked for.',
  request: z.object({ includeEnded: z.boolean().default(false) }),
  reply: z.object({ nodes: z.array(nodeView), replicas: z.array(replicaView) }),
});

const nodeOperation = { request: z.object({ nodeId: id, reason: z.string().min(1).max(500) }), reply: z.object({ node: nodeView }) };

export const cordonNode = defineCommand({ subject: 'cmd.scheduler.cordon-node', summary: 'Closes a node to new replicas; what runs there goes on.', ...nodeOperation });

export const uncordonNode = defineCommand({ subject: 'cmd.scheduler.uncordon-node', summary: 'Opens a node to new replicas again, and ends its drain.', ...nodeOperation });

export const drainNode = defineCommand({ subject: 'cmd.scheduler.drain-node', summary: 'Empties a node: each of its replicas drains once another one is ready in its place.', ...nodeOperation });

export const announceReclaim = defineCommand({
  subject: 'cmd.scheduler.announce-reclaim',
  summary: 'Says that the owner of a node takes it back soon; its replicas are replaced before, as far as the time allows.',
  request: nodeOperation.request.extend({ inSeconds: z.int().min(0).max(86_400) }),
  reply: nodeOperation.reply,
});

/** Body of the live signal `tele.node.<nodeId>`, sent every two seconds. */
export const nodeHeartbeat = z.object({ nodeId: id, sentAtMs: z.number(), replicas: z.array(id), diskFreeBytes: bytes });
export type NodeHeartbeat = z.infer<typeof nodeHeartbeat>;

/** Body of the live signal `tele.replica.<replicaId>`, sent every second while an engine runs. */
export const replicaTelemetry = z.object({
  replicaId: id,
  endpointId: id,
  sentAtMs: z.number(),
  running: z.number().nonnegative(),
  waiting: z.number().nonnegative(),
  /** 0 to 1; null where the engine does not say. */
  kvCacheUsage: z.number().min(0).max(1).nullable(),
  promptTokensTotal: z.number().nonnegative(),
  completionTokensTotal: z.number().nonnegative(),
});
export type ReplicaTelemetry = z.infer<typeof replicaTelemetry>;

/** Body of the live signal `tele.pull.<replicaId>`, at most four times a second. */
export const pullProgress = z.object({
  replicaId: id,
  endpointId: id,
  file: z.string(),
  completedBytes: bytes,
  totalBytes: bytes.nullable(),
});
export type PullProgress = z.infer<typeof pullProgress>;

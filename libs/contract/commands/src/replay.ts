import { z } from 'zod';
import { defineCommand } from './define-command.js';

export const projectionVerification = z.object({
  name: z.string(),
  identical: z.boolean(),
  events: z.int(),
  rows: z.int(),
  liveDigest: z.string(),
  rebuiltDigest: z.string(),
  positions: z.record(z.string(), z.number()),
});

/** Each service that owns database projections serves `cmd.<service>.verify-projections`. */
export function verifyProjections(service: 'registry' | 'scheduler' | 'autoscaler' | 'batch' | 'metering') {
  return defineCommand({
    subject: `cmd.${service}.verify-projections`,
    summary: 'Rebuilds every projection of the service from the first event into a shadow and compares it, byte for byte, with the live one.',
    request: z.object({ /** Swap the rebuilt tables in. */ swap: z.boolean().default(false) }),
    reply: z.object({ projections: z.array(projectionVerification) }),
  });
}

/** Services that keep projections in a database. */
export const projectionOwners = ['registry', 'scheduler', 'autoscaler', 'batch', 'metering'] as const;

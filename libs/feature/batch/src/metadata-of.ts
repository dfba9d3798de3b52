import type { Causation, CommandMetadata } from '@penstock/kernel';
import type { BatchPorts } from './batch-ports.js';

export const SOURCE = 'penstock/batch';

/** Metadata of a step that the service takes by itself: everything that a job does follows from its creation. */
export function metadataOf(ports: Pick<BatchPorts, 'ids' | 'clock'>, batchId: string): CommandMetadata {
  return asked(ports, { correlationId: batchId, causationId: batchId });
}

/** Metadata of a command that somebody sent. */
export function asked(ports: Pick<BatchPorts, 'ids' | 'clock'>, causation: Causation): CommandMetadata {
  return { ...causation, commandId: ports.ids.next('cmd'), source: SOURCE, nowMs: ports.clock.now() };
}

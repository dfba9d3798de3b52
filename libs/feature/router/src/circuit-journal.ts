import { replicaCircuitClosedV1, replicaCircuitOpenedV1 } from '@penstock/contract-events';
import type { Clock, EventLog, IdSource, Logger, NewEvent } from '@penstock/kernel';
import type { AdmissionEffect } from '@penstock/domain-routing';

export type CircuitEffect = Extract<AdmissionEffect, { kind: 'circuit-opened' | 'circuit-closed' }>;

export interface CircuitJournalPorts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: EventLog;
  readonly logger: Logger;
}

/** Appends that may be under way at once; while the log is away, further events are dropped. */
const APPENDS_MAX = 64;

/** Writes circuit changes to the log, for whoever asks later. Best effort: routing never waits for it. */
export class CircuitJournal {
  private underWay = 0;

  constructor(private readonly ports: CircuitJournalPorts) {}

  record(effect: CircuitEffect): void {
    const { replicaId, endpointId } = effect;
    this.ports.logger.warn({ replicaId, endpointId, change: effect.kind }, 'a circuit changed');
    if (this.underWay >= APPENDS_MAX) return;
    this.underWay += 1;
    this.append(effect.replicaId, eventOf(effect))
      .catch((error: unknown) => this.ports.logger.warn({ err: error, replicaId }, 'a circuit event was not stored'))
      .finally(() => (this.underWay -= 1));
  }

  private async append(replicaId: string, event: NewEvent): Promise<void> {
    const commandId = this.ports.ids.next('cmd');
    await this.ports.log.append({
      ref: { context: 'routing', aggregate: 'replica-circuit', id: replicaId },
      events: [event],
      expected: 'any',
      commandId,
      correlationId: commandId,
      causationId: commandId,
      source: 'penstock/router',
      nowMs: this.ports.clock.now(),
    });
  }
}

function eventOf(effect: CircuitEffect): NewEvent {
  const { replicaId, endpointId } = effect;
  if (effect.kind === 'circuit-closed') return { type: replicaCircuitClosedV1.type, data: { replicaId, endpointId } };
  const { reason, failures, retryAtMs } = effect;
  return { type: replicaCircuitOpenedV1.type, data: { replicaId, endpointId, reason, failures, retryAt: new Date(retryAtMs).toISOString() } };
}

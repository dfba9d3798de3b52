import { KEY_USES_MAX, type KeyUsesNotedV1 } from '@penstock/contract-events';
import { keyUsesRef, type AccessState } from '@penstock/domain-access';
import type { Clock, EventLog, IdSource, Logger, Timers } from '@penstock/kernel';

/** A key whose last use is known to be younger is not noted again. */
export const USE_NOTED_EVERY_MS = 3_600_000;
/** How often what was seen is written down. */
const FLUSH_INTERVAL_MS = 60_000;
/** Keys remembered between two flushes; others are noted at their next use. */
const KEYS_SEEN_MAX = 100_000;

export interface KeyUsesPorts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: EventLog;
  readonly logger: Logger;
  readonly timers: Timers;
}

/** When keys were used, in memory; the event log learns of each key about once an hour, many keys at a time. */
export class KeyUses {
  private readonly seen = new Map<string, number>();
  private readonly stopFlushing: () => void;

  constructor(private readonly gatewayId: string, private readonly access: () => AccessState, private readonly ports: KeyUsesPorts) {
    this.stopFlushing = ports.timers.every(FLUSH_INTERVAL_MS, () => this.flush());
  }

  note(keyId: string): void {
    if (this.seen.size < KEYS_SEEN_MAX || this.seen.has(keyId)) this.seen.set(keyId, this.ports.clock.now());
  }

  /** As this gateway saw it since the last flush. */
  lastUsedAtMs(keyId: string): number | undefined {
    return this.seen.get(keyId);
  }

  /** Writes down what is news. Nothing depends on it, so a failure is only logged. */
  async flush(): Promise<void> {
    const { keys } = this.access();
    const due = [...this.seen].filter(([keyId, usedAtMs]) => {
      const key = keys.get(keyId);
      return key !== undefined && (key.lastUsedAtMs === null || usedAtMs - key.lastUsedAtMs >= USE_NOTED_EVERY_MS);
    });
    this.seen.clear();
    for (let start = 0; start < due.length; start += KEY_USES_MAX) {
      const uses = due.slice(start, start + KEY_USES_MAX).map(([keyId, usedAtMs]) => ({ keyId, usedAt: new Date(usedAtMs).toISOString() }));
      await this.append({ gatewayId: this.gatewayId, uses }).catch((error: unknown) => this.ports.logger.warn({ err: error }, 'the use of keys was not noted'));
    }
  }

  stop(): void {
    this.stopFlushing();
  }

  private async append(data: KeyUsesNotedV1): Promise<void> {
    const commandId = this.ports.ids.next('cmd');
    await this.ports.log.append({
      ref: keyUsesRef(this.gatewayId), events: [{ type: 'key-uses.noted.v1', data }], expected: 'any', commandId, source: 'penstock/gateway', nowMs: this.ports.clock.now(), correlationId: commandId, causationId: commandId,
    });
  }
}

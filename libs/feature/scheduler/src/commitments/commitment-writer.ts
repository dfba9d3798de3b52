import { commitmentLedgerRef, type CommitmentBook, type CommitmentEvent } from '@penstock/domain-placement';
import type { Causation, Clock, EventLog, IdSource, LiveProjection } from '@penstock/kernel';
import { SCHEDULER_SOURCE } from '../fleet-writer.js';

/** Writes to the ledger of promises, on the version that a decision was made on. */
export class CommitmentWriter {
  constructor(private readonly log: EventLog, private readonly book: LiveProjection<CommitmentBook>, private readonly clock: Clock, private readonly ids: IdSource) {}

  /** False when somebody else wrote since; the view has caught up with that before it returns. */
  async append(events: readonly CommitmentEvent[], expected: number, causation: Causation): Promise<boolean> {
    const result = await this.log.append({ ref: commitmentLedgerRef, events, expected, commandId: this.ids.next('cmd'), source: SCHEDULER_SOURCE, nowMs: this.clock.now(), ...causation });
    const newest = result.kind === 'appended' ? result.lastSequence : result.actual;
    if (newest !== undefined) await this.book.waitFor('EV_FLEET', newest);
    return result.kind === 'appended';
  }
}

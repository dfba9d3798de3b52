import type { PlacementDecidedV2 } from '@penstock/contract-events';
import { placementLedgerRef, type FleetState } from '@penstock/domain-lifecycle';
import {
  handleCommand, type AggregateRef, type Causation, type Clock, type CommandOutcome, type Decider, type EventLog, type IdSource, type LiveProjection, type NewEvent,
} from '@penstock/kernel';

export const SCHEDULER_SOURCE = 'penstock/scheduler';

/** Writes to the fleet's stream, and knows whether the projection has seen what it wrote. */
export class FleetWriter {
  private lastWritten = 0;

  constructor(private readonly log: EventLog, private readonly fleet: LiveProjection<FleetState>, private readonly clock: Clock, private readonly ids: IdSource) {}

  /** False while a plan made now would not know of our own last step; the projection's next change asks again. */
  isCaughtUp(): boolean {
    return (this.fleet.positions()['EV_FLEET'] ?? 0) >= this.lastWritten;
  }

  /** `commandId` makes a step that happens once in the life of an aggregate idempotent; left out, the step gets a fresh one. */
  async handle<State, Command, Event extends NewEvent>(
    decider: Decider<State, Command, Event>, ref: AggregateRef, command: Command, causation?: Causation, commandId = this.ids.next('cmd'),
  ): Promise<CommandOutcome<State>> {
    const cause = causation ?? { correlationId: commandId, causationId: commandId };
    const outcome = await handleCommand(this.log, decider, ref, command, { ...cause, commandId, source: SCHEDULER_SOURCE, nowMs: this.clock.now() });
    if (outcome.kind === 'done' && outcome.events.length > 0) this.lastWritten = Math.max(this.lastWritten, outcome.lastSequence);
    return outcome;
  }

  /**
   * Claims capacity: all entries or none, and only if nobody wrote to the ledger since the projection read it.
   * False means that the plan is out of date and has to be made again.
   */
  async claim(entries: readonly PlacementDecidedV2[], ledgerSequence: number, causation: Causation): Promise<boolean> {
    const result = await this.log.append({
      ref: placementLedgerRef,
      events: entries.map((data) => ({ type: 'placement.decided.v2', data })),
      expected: ledgerSequence,
      commandId: this.ids.next('cmd'),
      source: SCHEDULER_SOURCE,
      nowMs: this.clock.now(),
      ...causation,
    });
    if (result.kind === 'appended') this.lastWritten = Math.max(this.lastWritten, result.lastSequence);
    return result.kind === 'appended';
  }
}

import type { FleetState } from '@penstock/domain-lifecycle';
import { handleCommand, type AggregateRef, type Clock, type CommandOutcome, type Decider, type EventLog, type IdSource, type LiveProjection, type NewEvent } from '@penstock/kernel';

/** Says facts about nodes and replicas to the fleet's stream, and knows whether the projection has seen them. */
export class FleetFacts {
  private lastWritten = 0;

  constructor(private readonly log: EventLog, private readonly fleet: LiveProjection<FleetState>, private readonly clock: Clock, private readonly ids: IdSource, private readonly source: string) {}

  /** False while a decision made now would not know of our own last fact; the projection's next change asks again. */
  isCaughtUp(): boolean {
    return (this.fleet.positions()['EV_FLEET'] ?? 0) >= this.lastWritten;
  }

  /** One try. Throws while the log cannot be reached; the next reconciliation decides anew. */
  async say<State, Command, Event extends NewEvent>(decider: Decider<State, Command, Event>, ref: AggregateRef, command: Command): Promise<CommandOutcome<State>> {
    const commandId = this.ids.next('cmd');
    const outcome = await handleCommand(this.log, decider, ref, command, { commandId, correlationId: commandId, causationId: commandId, source: this.source, nowMs: this.clock.now() });
    if (outcome.kind === 'done' && outcome.events.length > 0) this.lastWritten = Math.max(this.lastWritten, outcome.lastSequence);
    return outcome;
  }
}

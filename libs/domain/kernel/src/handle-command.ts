import { assert } from './assert.js';
import type { Decider } from './decider.js';
import type { AggregateRef, Causation, EventLog, NewEvent } from './event-log.js';
import type { Refusal } from './refusal.js';

/** How often a decision is made again after somebody else wrote first. */
export const CONFLICT_RETRIES_MAX = 8;

export interface CommandMetadata extends Causation {
  readonly commandId: string;
  readonly source: string;
  readonly nowMs: number;
}

export type CommandOutcome<State> =
  | { readonly kind: 'done'; readonly state: State; readonly lastSequence: number; readonly events: readonly NewEvent[] }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Loads the aggregate, decides, appends; on a conflict loads and decides again.
 * A command whose events are stored already (same `commandId`) is recognised by the log and is not stored twice.
 */
export async function handleCommand<State, Command, Event extends NewEvent>(
  log: EventLog,
  decider: Decider<State, Command, Event>,
  ref: AggregateRef,
  command: Command,
  metadata: CommandMetadata,
): Promise<CommandOutcome<State>> {
  for (let attempt = 0; attempt <= CONFLICT_RETRIES_MAX; attempt += 1) {
    const history = await log.load(ref);
    const state = history.reduce((current, event) => decider.evolve(current, event as unknown as Event), decider.initialState);
    const expected = history.at(-1)?.sequence ?? 0;
    if (history.some((event) => event.id === `${metadata.commandId}.0`)) {
      return { kind: 'done', state, lastSequence: expected, events: [] };
    }
    const decision = decider.decide(command, state);
    if (decision.kind === 'refused') return decision;
    if (decision.events.length === 0) return { kind: 'done', state, lastSequence: expected, events: [] };
    const result = await log.append({ ref, events: decision.events, expected, ...metadata });
    if (result.kind === 'appended') {
      const after = decision.events.reduce((current, event) => decider.evolve(current, event), state);
      return { kind: 'done', state: after, lastSequence: result.lastSequence, events: decision.events };
    }
  }
  assert(ref.id.length > 0, 'an aggregate has an id');
  return {
    kind: 'refused',
    refusal: { code: 'conflict', message: `${ref.aggregate} ${ref.id} changed too often meanwhile; send the command again.`, retryAfterMs: 200 },
  };
}

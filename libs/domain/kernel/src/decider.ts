import type { NewEvent } from './event-log.js';
import type { Refusal } from './refusal.js';

/**
 * The functional core of one aggregate. `decide` is pure: time and fresh ids come inside the command.
 * It returns the events that follow (none, when the command changes nothing) or a {@link Refusal}.
 */
export interface Decider<State, Command, Event extends NewEvent> {
  readonly initialState: State;
  decide(command: Command, state: State): Decision<Event>;
  evolve(state: State, event: Event): State;
}

export type Decision<Event extends NewEvent> =
  | { readonly kind: 'accepted'; readonly events: readonly Event[] }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export function accept<Event extends NewEvent>(...events: readonly Event[]): Decision<Event> {
  return { kind: 'accepted', events };
}

export function refuse<Event extends NewEvent>(refusal: Refusal): Decision<Event> {
  return { kind: 'refused', refusal };
}

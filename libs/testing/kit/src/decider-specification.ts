import type { Decider, NewEvent, Refusal } from '@penstock/kernel';
import { deepStrictEqual, fail } from 'node:assert';

export interface DeciderGiven<Command, Event> {
  when(command: Command): DeciderWhen<Event>;
}

export interface DeciderWhen<Event> {
  /** The command is accepted with exactly these events; none says that it changes nothing. */
  then(...events: readonly Event[]): void;
  /** The command is refused with this code. Returns the refusal for more checks. */
  thenRefused(code: string): Refusal;
}

/** `given(decider, …events).when(command).then(…events)`: what a decider does, told by events only. */
export function given<State, Command, Event extends NewEvent>(decider: Decider<State, Command, Event>, ...history: readonly Event[]): DeciderGiven<Command, Event> {
  const state = history.reduce((current, event) => decider.evolve(current, event), decider.initialState);
  return {
    when: (command) => {
      const decision = decider.decide(command, state);
      return {
        then: (...events) => {
          if (decision.kind === 'refused') fail(`refused with ${decision.refusal.code}: ${decision.refusal.message}`);
          deepStrictEqual(decision.events, events);
        },
        thenRefused: (code) => {
          if (decision.kind === 'accepted') fail(`accepted with ${JSON.stringify(decision.events)}, expected refusal ${code}`);
          deepStrictEqual(decision.refusal.code, code);
          return decision.refusal;
        },
      };
    },
  };
}

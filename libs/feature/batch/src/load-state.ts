import type { AggregateRef, Decider, EventLog, NewEvent } from '@penstock/kernel';

/** State of one aggregate as it stands in the log; what the log returns was checked against the contracts. */
export async function loadState<State, Command, Event extends NewEvent>(log: EventLog, decider: Decider<State, Command, Event>, ref: AggregateRef): Promise<State> {
  const history = await log.load(ref);
  return history.reduce((state, event) => decider.evolve(state, event as unknown as Event), decider.initialState);
}

import type { ReplicaPlacedV2, ReplicaReadyV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider, type Decision } from '@penstock/kernel';
import { evolveReplica, type ReplicaEvent, type ReplicaFacts, type ReplicaFailureCode } from './replica-facts.js';
import { isEnded, isStarting, mayAdvance, type LivingPhase } from './replica-phase.js';

export type ReplicaCommand =
  | ({ readonly kind: 'place' } & ReplicaPlacedV2)
  | { readonly kind: 'advance'; readonly phase: 'pulling' | 'loading' | 'warming' }
  | ({ readonly kind: 'mark-ready' } & Omit<ReplicaReadyV1, 'replicaId'> & { readonly replicaId?: string })
  | { readonly kind: 'start-drain'; readonly reason: string }
  | { readonly kind: 'stop'; readonly reason: string }
  /** `phase` defaults to the one the replica is in. With `onlyInPhase`, a replica that moved on meanwhile is left alone. */
  | { readonly kind: 'fail'; readonly phase?: LivingPhase | undefined; readonly onlyInPhase?: LivingPhase | undefined; readonly code: ReplicaFailureCode; readonly reason: string };

const REASON_LENGTH_MAX = 1_000;
const FAILURE_REASON_LENGTH_MAX = 2_000;

/**
 * A replica: placed, pulling, loading, warming, ready, draining, and in the end stopped or failed, which is final.
 * A command that would change nothing returns no event; one that comes too late or out of order is refused, except that
 * ending something that ended is a no-op, so that retries are safe.
 */
export const replicaDecider: Decider<ReplicaFacts | null, ReplicaCommand, ReplicaEvent> = {
  initialState: null,
  decide(command, state) {
    if (command.kind === 'place') return place(command, state);
    if (state === null) return refuse({ code: 'not_found', message: 'This replica was never placed; nothing can be said about it.' });
    if (isEnded(state.phase)) {
      return command.kind === 'advance' || command.kind === 'mark-ready' ? outOfOrder(state, command.kind) : accept();
    }
    return decideLiving(command, state, state.phase);
  },
  evolve: (state, event) => evolveReplica(state, event, (placed) => placed),
};

function place(command: Extract<ReplicaCommand, { kind: 'place' }>, state: ReplicaFacts | null): Decision<ReplicaEvent> {
  const { kind: _kind, ...data } = command;
  if (state === null) return accept({ type: 'replica.placed.v2', data });
  if (state.nodeId === data.members[0]?.nodeId && state.endpointId === data.endpointId) return accept();
  return refuse({ code: 'already_exists', message: `Replica ${data.replicaId} is placed on node ${state.nodeId} already; take a fresh id.`, param: 'replicaId' });
}

function decideLiving(command: Exclude<ReplicaCommand, { kind: 'place' }>, state: ReplicaFacts, phase: LivingPhase): Decision<ReplicaEvent> {
  const { replicaId } = state;
  switch (command.kind) {
    case 'advance':
      if (phase === command.phase) return accept();
      return mayAdvance(phase, command.phase) ? accept({ type: 'replica.advanced.v1', data: { replicaId, phase: command.phase } }) : outOfOrder(state, `advance to ${command.phase}`);
    case 'mark-ready': {
      if (phase === 'ready' && state.url === command.url) return accept();
      if (!isStarting(phase)) return outOfOrder(state, 'mark-ready');
      const { kind: _kind, ...data } = command;
      return accept({ type: 'replica.ready.v1', data: { ...data, replicaId } });
    }
    case 'start-drain':
      return phase === 'draining' ? accept() : accept({ type: 'replica.drain-started.v1', data: { replicaId, reason: command.reason.slice(0, REASON_LENGTH_MAX) } });
    case 'stop':
      return accept({ type: 'replica.stopped.v1', data: { replicaId, reason: command.reason.slice(0, REASON_LENGTH_MAX) } });
    case 'fail':
      if (command.onlyInPhase !== undefined && command.onlyInPhase !== phase) return accept();
      return accept({ type: 'replica.failed.v1', data: { replicaId, phase: command.phase ?? phase, code: command.code, reason: command.reason.slice(0, FAILURE_REASON_LENGTH_MAX) } });
  }
}

function outOfOrder(state: ReplicaFacts, what: string): Decision<ReplicaEvent> {
  return refuse({ code: 'invalid_value', message: `Replica ${state.replicaId} is ${state.phase}: ${what} comes too late or out of order. Follow its newest state.`, param: 'phase' });
}

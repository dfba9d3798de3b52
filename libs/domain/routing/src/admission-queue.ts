import type { Refusal } from '@penstock/kernel';
import { queueFull, tenantShareFull } from './admission-refusals.js';
import type { AdmissionState, Waiter } from './admission-state.js';

/** What the queue says to one more request. */
export type QueueVerdict =
  | { readonly kind: 'room' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** There is room once `waiter` is refused: its tenant holds more of the queue than the newcomer's. */
  | { readonly kind: 'displace'; readonly waiter: Waiter };

export function addWaiter(state: AdmissionState, waiter: Waiter): void {
  state.waiting.set(waiter.requestId, waiter);
  state.order.add(waiter);
  state.waitingByTenant.set(waiter.organisationId, waitingOf(state, waiter.organisationId) + 1);
}

export function removeWaiter(state: AdmissionState, waiter: Waiter): void {
  if (state.waiting.get(waiter.requestId) !== waiter) return;
  state.waiting.delete(waiter.requestId);
  state.order.remove(waiter);
  const left = waitingOf(state, waiter.organisationId) - 1;
  if (left > 0) state.waitingByTenant.set(waiter.organisationId, left);
  else state.waitingByTenant.delete(waiter.organisationId);
  if (state.waiting.size === 0) state.wakeRequested = false;
}

/**
 * A full queue gives up the youngest request of the lowest class for one of a higher class. One tenant alone may use the whole queue. As soon as others wait, no tenant gets beyond half of it, and a full queue
 * makes room for a newcomer by giving up the youngest request of the tenant that waits most.
 */
export function queueVerdict(state: AdmissionState, newcomer: Pick<Waiter, 'organisationId' | 'rank'>): QueueVerdict {
  const { queueMax } = state.settings;
  const { organisationId, rank } = newcomer;
  const lowest = state.waiting.size < queueMax ? undefined : lowestOf(state);
  if (lowest !== undefined && lowest.rank > rank) return { kind: 'displace', waiter: lowest };
  if (lowest !== undefined && lowest.rank < rank) return { kind: 'refused', refusal: queueFull(state) };
  const mine = waitingOf(state, organisationId);
  const othersWait = state.waiting.size > mine;
  if (othersWait && mine >= Math.ceil(queueMax / 2)) return { kind: 'refused', refusal: tenantShareFull(state, mine) };
  if (state.waiting.size < queueMax) return { kind: 'room' };
  const greediest = greediestTenant(state);
  // A difference of one would only swap who has more.
  if (greediest === undefined || greediest.waiting < mine + 2) return { kind: 'refused', refusal: queueFull(state) };
  const youngest = youngestOf(state, greediest.organisationId, rank);
  return youngest === undefined ? { kind: 'refused', refusal: queueFull(state) } : { kind: 'displace', waiter: youngest };
}

function waitingOf(state: AdmissionState, organisationId: string): number {
  return state.waitingByTenant.get(organisationId) ?? 0;
}

function greediestTenant(state: AdmissionState): { organisationId: string; waiting: number } | undefined {
  let greediest: { organisationId: string; waiting: number } | undefined;
  for (const [organisationId, waiting] of state.waitingByTenant) {
    if (greediest === undefined || waiting > greediest.waiting) greediest = { organisationId, waiting };
  }
  return greediest;
}

/** Never one of a class above the newcomer's. */
function youngestOf(state: AdmissionState, organisationId: string, rank: number): Waiter | undefined {
  let youngest: Waiter | undefined;
  for (const waiter of state.waiting.values()) if (waiter.organisationId === organisationId && waiter.rank >= rank) youngest = waiter;
  return youngest;
}

/** The last in turn: of the lowest class that waits. */
function lowestOf(state: AdmissionState): Waiter | undefined {
  return state.order.at(state.order.size - 1);
}

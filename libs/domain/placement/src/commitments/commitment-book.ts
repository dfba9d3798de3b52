import { asCatalogueEvent, type EventOf, type ReservationMadeV1, type reservationMadeV1, type ReservationRefusedV1, type reservationRefusedV1, type reservationReleasedV1, type ReservationReleasedV1 } from '@penstock/contract-events';
import { accept, refuse, type AggregateRef, type Decider, type Projection } from '@penstock/kernel';
import { beginMsOf, endMsOf } from './service-terms.js';

/** One ledger for the whole fleet: its version is what a promise is made on. */
export const commitmentLedgerRef: AggregateRef = { context: 'fleet', aggregate: 'commitment-ledger', id: 'fleet' };

/** Promises that stand at the same time. */
export const RESERVATIONS_MAX = 10_000;

/** Refusals and ended promises that are remembered, newest last; the log keeps all of them. */
export const ENDED_KEPT_MAX = 500;

export interface EndedReservation extends ReservationMadeV1 {
  readonly released: ReservationReleasedV1;
}

/** What was promised, as far as this process has read it. */
export interface CommitmentBook {
  /** Stream sequence of the newest entry, the version that the next one expects; 0 while there is none. */
  readonly lastSequence: number;
  readonly standing: ReadonlyMap<string, ReservationMadeV1>;
  readonly ended: readonly EndedReservation[];
  readonly refused: readonly ReservationRefusedV1[];
}

export type CommitmentEvent = EventOf<typeof reservationMadeV1> | EventOf<typeof reservationRefusedV1> | EventOf<typeof reservationReleasedV1>;

export type CommitmentCommand =
  | { readonly kind: 'make'; readonly data: ReservationMadeV1 }
  | { readonly kind: 'refuse'; readonly data: ReservationRefusedV1 }
  | { readonly kind: 'release'; readonly reservationId: string; readonly cause: ReservationReleasedV1['cause']; readonly reason: string };

const EMPTY: CommitmentBook = { lastSequence: 0, standing: new Map(), ended: [], refused: [] };

/** Promises are made once and end once. Whether there is room was found out before; the ledger's version says that it still holds. */
export const commitmentDecider: Decider<CommitmentBook, CommitmentCommand, CommitmentEvent> = {
  initialState: EMPTY,
  decide(command, book) {
    switch (command.kind) {
      case 'make':
        if (book.standing.has(command.data.reservationId)) return accept();
        if (book.standing.size >= RESERVATIONS_MAX) return refuse({ code: 'conflict', message: `${RESERVATIONS_MAX} reservations stand already; release some first.` });
        return accept({ type: 'reservation.made.v1', data: command.data });
      case 'refuse':
        return accept({ type: 'reservation.refused.v1', data: command.data });
      case 'release': {
        const standing = book.standing.get(command.reservationId);
        if (standing !== undefined) return accept({ type: 'reservation.released.v1', data: { reservationId: command.reservationId, endpointId: standing.level.endpointId, cause: command.cause, reason: command.reason } });
        if (book.ended.some(({ reservationId }) => reservationId === command.reservationId)) return accept();
        return refuse({ code: 'not_found', message: `There is no reservation ${command.reservationId}; list the reservations to see their ids.`, param: 'reservationId' });
      }
    }
  },
  evolve(book, event) {
    switch (event.type) {
      case 'reservation.made.v1':
        return { ...book, standing: new Map(book.standing).set(event.data.reservationId, event.data) };
      case 'reservation.refused.v1':
        return { ...book, refused: [...book.refused, event.data].slice(-ENDED_KEPT_MAX) };
      case 'reservation.released.v1': {
        const made = book.standing.get(event.data.reservationId);
        if (made === undefined) return book;
        const standing = new Map(book.standing);
        standing.delete(event.data.reservationId);
        return { ...book, standing, ended: [...book.ended, { ...made, released: event.data }].slice(-ENDED_KEPT_MAX) };
      }
      default:
        return book;
    }
  },
};

interface StoredBook {
  readonly lastSequence: number;
  readonly standing: readonly ReservationMadeV1[];
  readonly ended: readonly EndedReservation[];
  readonly refused: readonly ReservationRefusedV1[];
}

/** The promises of the fleet, in memory. */
export const commitmentProjection: Projection<CommitmentBook> = {
  name: 'commitments',
  version: 1,
  streams: ['EV_FLEET'],
  initialState: () => EMPTY,
  apply(book, recorded) {
    const event = asCatalogueEvent(recorded);
    if (event.type !== 'reservation.made.v1' && event.type !== 'reservation.refused.v1' && event.type !== 'reservation.released.v1') return book;
    return { ...commitmentDecider.evolve(book, event), lastSequence: recorded.sequence };
  },
  snapshot: (book): StoredBook => ({ ...book, standing: [...book.standing.values()] }),
  restore(snapshot) {
    const stored = snapshot as StoredBook;
    return { ...stored, standing: new Map(stored.standing.map((made) => [made.reservationId, made])) };
  },
};

/** When its replicas begin to start, and when it ends, in milliseconds. */
export function windowOf({ level, capacity }: ReservationMadeV1): { readonly beginMs: number; readonly endMs: number } {
  return { beginMs: beginMsOf(level) - capacity.leadSeconds * 1_000, endMs: endMsOf(level) };
}

/** What an endpoint is never to fall under. */
export interface EndpointFloor {
  readonly replicas: number;
  /** The highest of its promises. */
  readonly priority: number;
  readonly reservationIds: readonly string[];
  /** What each of its replicas has to have, by the most urgent promise of a rate; null where only numbers of replicas were promised. */
  readonly hardware: PromisedHardware | null;
}

/** What a promised rate rests on. */
export interface PromisedHardware {
  readonly gpuType: string;
  readonly migProfile: string | null;
  /** Of each accelerator, in thousandths. */
  readonly computeMilli: number;
}

/** Floors of all endpoints with a promise that is in force, by endpoint. Several promises on one endpoint add up. */
export function floorsAt(book: CommitmentBook, nowMs: number): ReadonlyMap<string, EndpointFloor> {
  const floors = new Map<string, EndpointFloor>();
  for (const made of [...book.standing.values()].sort((one, other) => other.level.priority - one.level.priority)) {
    const { beginMs, endMs } = windowOf(made);
    if (beginMs > nowMs || endMs <= nowMs) continue;
    const { endpointId, priority } = made.level;
    const before = floors.get(endpointId) ?? { replicas: 0, priority: 0, reservationIds: [], hardware: null };
    floors.set(endpointId, {
      replicas: before.replicas + made.capacity.parts.reduce((sum, { count }) => sum + count, 0),
      priority: Math.max(before.priority, priority),
      reservationIds: [...before.reservationIds, made.reservationId],
      hardware: before.hardware ?? hardwareOfPromise(made),
    });
  }
  return floors;
}

function hardwareOfPromise({ capacity }: ReservationMadeV1): PromisedHardware | null {
  const [part] = capacity.parts;
  return capacity.requestsPerS === null || part === undefined ? null : { gpuType: capacity.gpuType, migProfile: part.migProfile, computeMilli: part.computeMilli };
}

/** Promises that are over, and those of endpoints that are gone. */
export function overdue(book: CommitmentBook, nowMs: number, isGone: (endpointId: string) => boolean): readonly { readonly reservationId: string; readonly cause: ReservationReleasedV1['cause']; readonly reason: string }[] {
  return [...book.standing.values()].flatMap(({ reservationId, level }): { reservationId: string; cause: ReservationReleasedV1['cause']; reason: string }[] => {
    if (endMsOf(level) <= nowMs) return [{ reservationId, cause: 'expired', reason: `it ended at ${level.to}` }];
    return isGone(level.endpointId) ? [{ reservationId, cause: 'endpoint-retired', reason: 'its endpoint was retired' }] : [];
  });
}

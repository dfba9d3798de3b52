import { RESERVATIONS_LISTED_MAX, type listReservations, type makeReservation, type releaseReservation, type ReservationView } from '@penstock/contract-commands';
import type { ReservationMadeV1, ReservationRefusedV1, ServiceLevel } from '@penstock/contract-events';
import type { CatalogState, EndpointState } from '@penstock/domain-catalog';
import { readyReplicasOf, type FleetState } from '@penstock/domain-lifecycle';
import { checkTerms, commitmentDecider, floorsAt, gpuTypeNamed, GPU_TYPES, windowOf, type CommitmentBook, type CommitmentCommand } from '@penstock/domain-placement';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import type { Causation, Clock, IdSource, LiveProjection, Refusal } from '@penstock/kernel';
import type { z } from 'zod';
import { gpuNameOf } from '../live-fleet.js';
import { admitLevel } from './admit-level.js';
import type { CommitmentWriter } from './commitment-writer.js';
import { agreedObjective } from './model-knowledge.js';

type MakeRequest = z.output<typeof makeReservation.request>;
type MakeReply = z.input<typeof makeReservation.reply>;

export interface ReservationDeskParts {
  readonly fleet: LiveProjection<FleetState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly book: LiveProjection<CommitmentBook>;
  readonly writer: CommitmentWriter;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Admissions that lose to another writer are made anew this often. */
const ATTEMPTS_MAX = 5;

/** Makes, releases and lists promises. */
export class ReservationDesk {
  constructor(private readonly parts: ReservationDeskParts) {}

  async make({ level: asked }: MakeRequest, causation: Causation): Promise<HandlerOutcome<MakeReply>> {
    const { clock, ids, catalog, book } = this.parts;
    const nowMs = clock.now();
    const level: ServiceLevel = { ...asked, ...agreedObjective(asked.latencyClass, asked.ttftMs, asked.itlMs), from: asked.from ?? new Date(nowMs).toISOString(), gpuType: asked.gpuType === null ? null : gpuNameOf(asked.gpuType) };
    const endpoint = catalog.state().endpoints.get(level.endpointId);
    const fault = endpoint === undefined || endpoint.status === 'retired' ? noEndpoint(level) : (this.mismatch(asked.gpuType, level, endpoint) ?? termsFault(level, nowMs));
    if (fault !== undefined || endpoint === undefined) return refused(fault ?? noEndpoint(level));
    const reservationId = ids.next('res');
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const admission = admitLevel({ fleet: this.parts.fleet.state(), catalog: catalog.state(), book: book.state(), nowMs }, reservationId, level, endpoint);
      const written = await this.write(admission.kind === 'admitted' ? { kind: 'make', data: admission.data } : { kind: 'refuse', data: admission.data }, causation);
      if (written.kind === 'refused') return written;
      if (!written.value) continue;
      if (admission.kind === 'refused') return ok({ kind: 'refused', refusal: admission.data });
      return ok({ kind: 'made', reservation: this.viewOf(admission.data, floorsAt(book.state(), nowMs), nowMs) });
    }
    return refused({ code: 'conflict', message: 'Other reservations were made at the same time; send the command again.', retryAfterMs: 1_000 });
  }

  async release({ reservationId, reason }: z.output<typeof releaseReservation.request>, causation: Causation): Promise<HandlerOutcome<z.input<typeof releaseReservation.reply>>> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const written = await this.write({ kind: 'release', reservationId, cause: 'operator', reason }, causation);
      if (written.kind === 'refused') return written;
      if (written.value) return ok({ reservationId });
    }
    return refused({ code: 'conflict', message: 'Other reservations changed at the same time; send the command again.', retryAfterMs: 1_000 });
  }

  list({ includeEnded, limit }: z.output<typeof listReservations.request>): z.input<typeof listReservations.reply> {
    const book = this.parts.book.state();
    const nowMs = this.parts.clock.now();
    const floors = floorsAt(book, nowMs);
    const standing = [...book.standing.values()].map((made) => this.viewOf(made, floors, nowMs));
    const ended = !includeEnded ? [] : [
      ...book.ended.map((made): ReservationView => ({ ...this.viewOf(made, floors, nowMs), status: made.released.cause === 'expired' ? 'expired' : 'released', reason: made.released.reason })),
      ...book.refused.map((refusal) => refusedView(refusal)),
    ];
    return { reservations: [...ended, ...standing].reverse().slice(0, Math.min(limit, RESERVATIONS_LISTED_MAX)) };
  }

  /** True when it is in the log, false when somebody else wrote first and the view has caught up with that. */
  private async write(command: CommitmentCommand, causation: Causation): Promise<HandlerOutcome<boolean>> {
    const book = this.parts.book.state();
    const decision = commitmentDecider.decide(command, book);
    if (decision.kind === 'refused') return refused(decision.refusal);
    return ok(decision.events.length === 0 || (await this.parts.writer.append(decision.events, book.lastSequence, causation)));
  }

  /** What does not go together, before the fleet is looked at. */
  private mismatch(askedType: string | null, level: ServiceLevel, endpoint: EndpointState): Refusal | undefined {
    if (askedType !== null && gpuTypeNamed(askedType) === undefined && !this.hasType(level.gpuType)) return { code: 'invalid_value', message: `No GPU of type ${askedType} is known. Take one of ${GPU_TYPES.map(({ type }) => type).join(', ')}, or leave it out.`, param: 'level.gpuType' };
    if (endpoint.organisationId !== null && level.organisationId !== null && endpoint.organisationId !== level.organisationId) return { code: 'invalid_value', message: `${endpoint.name} belongs to another organisation; reserve it for that one.`, param: 'level.organisationId' };
    return undefined;
  }

  private hasType(gpuType: string | null): boolean {
    return [...this.parts.fleet.state().nodes.values()].some(({ accelerators }) => accelerators.some(({ type }) => gpuNameOf(type) === gpuType));
  }

  private viewOf(made: ReservationMadeV1, floors: ReturnType<typeof floorsAt>, nowMs: number): ReservationView {
    const { reservationId, level, capacity, reason } = made;
    return {
      reservationId, level, capacity, reason, status: windowOf(made).beginMs > nowMs ? 'planned' : 'in-force', ready: readyReplicasOf(this.parts.fleet.state(), level.endpointId).length,
      floor: floors.get(level.endpointId)?.replicas ?? 0, wouldFit: [],
    };
  }
}

function noEndpoint({ endpointId }: ServiceLevel): Refusal {
  return { code: 'endpoint_not_found', message: `There is no endpoint ${endpointId}; deploy it first, or list the endpoints to see their ids.`, param: 'level.endpointId' };
}

function termsFault(level: ServiceLevel, nowMs: number): Refusal | undefined {
  const fault = checkTerms(level, nowMs);
  return fault === undefined ? undefined : { ...fault, param: `level.${fault.param ?? ''}` };
}

function refusedView({ reservationId, level, reason, wouldFit }: ReservationRefusedV1): ReservationView {
  return { reservationId, level, status: 'refused', capacity: null, reason, ready: 0, floor: 0, wouldFit };
}

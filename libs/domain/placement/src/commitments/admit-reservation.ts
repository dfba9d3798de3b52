import type { ReservationMadeV1, ReservationRefusedV1, ServiceLevel } from '@penstock/contract-events';
import { REPLICAS_MAX } from '../fleet/fleet-options.js';
import type { FleetNode } from '../fleet/fleet-types.js';
import { countWords, gpusOf, type CapacityOption } from './capacity-options.js';
import { CommittedFleet } from './committed-fleet.js';
import { beginMsOf, endMsOf, promisedRate } from './service-terms.js';
import { whatWouldFit } from './what-would-fit.js';

export interface AdmissionInput {
  readonly reservationId: string;
  readonly level: ServiceLevel;
  /** Nodes that are up, cordoned ones included. */
  readonly nodes: readonly FleetNode[];
  readonly commitments: readonly ReservationMadeV1[];
  /** Ways to keep a level like the one asked for, the cheapest first; asked again for smaller rates and other hardware. */
  readonly optionsFor: (level: ServiceLevel) => readonly CapacityOption[];
  /** Nodes of the same kind that could be added, for a refusal; none where the hardware is not known. */
  readonly nodeToAdd: (gpuType: string) => Omit<FleetNode, 'nodeId' | 'failureDomain'> | undefined;
  /** What would hold the model at all, for a refusal. */
  readonly hint: string;
  readonly nowMs: number;
}

export type Admission = { readonly kind: 'admitted'; readonly data: ReservationMadeV1 } | { readonly kind: 'refused'; readonly data: ReservationRefusedV1 };

/** Ways that are tried, the cheapest first. */
const OPTIONS_TRIED_MAX = 24;

const REASON_LENGTH_MAX = 1_000;

/**
 * Admits a service level when the fleet has room for it beside everything that was promised before, at every time of its
 * window; best effort on the fleet does not count, since it gives way. A refusal names what would fit.
 */
export function admitReservation(input: AdmissionInput): Admission {
  const { level, reservationId, nowMs } = input;
  const options = input.optionsFor(level);
  if (options.length === 0 && isTooMuch(input)) {
    const reason = `${Math.round(promisedRate(level))} requests/s would take more than ${REPLICAS_MAX} replicas of any kind: split it over several endpoints`;
    return { kind: 'refused', data: { reservationId, level, code: 'too_many', reason, wouldFit: [...whatWouldFit(input)] } };
  }
  if (options.length === 0) return { kind: 'refused', data: { reservationId, level, code: 'objective_unreachable', reason: unreachable(input), wouldFit: [...whatWouldFit(input)] } };
  const fleet = new CommittedFleet(input.nodes, input.commitments, Math.max(nowMs, beginMsOf(level)), endMsOf(level));
  const chosen = options.slice(0, OPTIONS_TRIED_MAX).find((option) => fleet.fits(option));
  if (chosen !== undefined) return { kind: 'admitted', data: { reservationId, level, capacity: chosen.capacity, reason: chosen.says.slice(0, REASON_LENGTH_MAX) } };
  return { kind: 'refused', data: { reservationId, level, code: 'no_capacity', reason: noRoom(options[0] as CapacityOption, fleet, level), wouldFit: [...whatWouldFit(input)] } };
}

/** Whether a smaller rate could be kept. */
function isTooMuch({ level, optionsFor }: AdmissionInput): boolean {
  return promisedRate(level) > 1 && optionsFor({ ...level, requestsPerS: 1, tokensPerS: 0 }).length > 0;
}

function unreachable({ level, hint }: AdmissionInput): string {
  const wish = level.gpuType === null ? 'any hardware of the fleet' : level.gpuType;
  return `no profile keeps ${level.ttftMs} ms to the first token and ${level.itlMs} ms between tokens on ${wish}${level.tolerates === 'failure-domain' ? ' with a failure domain lost' : ''}: ${hint}`.slice(0, REASON_LENGTH_MAX);
}

function noRoom({ option }: CapacityOption, fleet: CommittedFleet, level: ServiceLevel): string {
  const { there, promised } = fleet.gpus(option.gpuType);
  const rate = promisedRate(level);
  const asked = rate > 0 ? `${Math.round(rate * 100) / 100} requests/s need` : `${countWords(level.replicas)} need`;
  const broken = fleet.broken();
  const lost = broken.length === 0 ? '' : `; ${broken.length} earlier reservations have no room either, since nodes are gone`;
  return `${asked} ${Math.ceil(gpusOf(option) * 100) / 100} x ${option.gpuType}, ${countWords(option.parts.length)}; ${there} are there and ${promised} of them are promised to others${lost}`.slice(0, REASON_LENGTH_MAX);
}

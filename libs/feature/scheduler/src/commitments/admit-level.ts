import type { ReservationRefusedV1, ServiceLevel } from '@penstock/contract-events';
import { replicaMemoryBytes, type CatalogState, type EndpointState } from '@penstock/domain-catalog';
import type { FleetState } from '@penstock/domain-lifecycle';
import {
  admitReservation, capacityOptions, countedCapacity, GPU_TYPES, hardwareHint, imaginedNode, largestShapeWith, promisedRate,
  type Admission, type CapacityOption, type CommitmentBook, type FleetHardware, type FleetNode, type FleetPart, type ProfileAnswer, type RequestShape,
} from '@penstock/domain-placement';
import { requiredType } from '../exact-hardware.js';
import { gpuNameOf, hardwareOf, liveFleet } from '../live-fleet.js';
import { findModel, profilesOf, type ModelKnowledge } from './model-knowledge.js';

const MIB = 1_048_576;
const REASON_LENGTH_MAX = 1_000;

/** Everything an admission is made on. */
export interface AdmissionState {
  readonly fleet: FleetState;
  readonly catalog: CatalogState;
  readonly book: CommitmentBook;
  readonly nowMs: number;
}

/** Turns terms that are sound into an admission or a refusal. Pure. */
export function admitLevel(state: AdmissionState, reservationId: string, level: ServiceLevel, endpoint: EndpointState): Admission {
  const { catalog, fleet, book, nowMs } = state;
  const required = requiredType(endpoint, fleet);
  const own = required === null ? null : gpuNameOf(required);
  if (own !== null && level.gpuType !== null && own !== level.gpuType) {
    return refusal(reservationId, level, 'hardware_mismatch', `${endpoint.name} runs on ${own} only: reserve ${own}, or deploy an endpoint on ${level.gpuType} and reserve that one`);
  }
  const { nodes } = liveFleet(fleet, catalog, nowMs);
  const common = { reservationId, level: { ...level, gpuType: level.gpuType ?? own }, nodes, commitments: [...book.standing.values()], nodeToAdd, nowMs };
  if (promisedRate(level) === 0) {
    const part = partOfOne(endpoint, catalog);
    return admitReservation({ ...common, optionsFor: (asked) => countedOptions(asked, part, nodes), hint: 'no accelerator of the fleet is of that type' });
  }
  const hardware = hardwareOf(nodes.filter(({ gpuType }) => own === null || gpuType === own), [endpoint.hardware.acceleratorCount * (endpoint.rules?.nodes ?? 1)]);
  const shape = { promptTokens: level.promptTokens, completionTokens: level.completionTokens };
  const knowledge = findModel(catalog, endpoint.endpointId, endpoint.organisationId);
  const answer: ProfileAnswer = knowledge === undefined ? { profiles: [], refused: [] } : profilesOf(knowledge, fleet, [knowledge.precision], hardware, shape);
  const migProfile = endpoint.rules?.migProfile ?? null;
  const profiles = answer.profiles.filter(({ device }) => migProfile === null || device.slice === migProfile);
  if (knowledge === undefined || profiles.length === 0) {
    const isKnown = knowledge !== undefined && knowledge.model !== null && answer.refused.length === 0 && hardware.some(({ gpu }) => gpu.bandwidthGbPerS > 0);
    return refusal(reservationId, level, isKnown ? 'objective_unreachable' : 'no_profile', isKnown ? hintFor(knowledge, hardware, shape) : holesOf(endpoint, knowledge, answer, hardware));
  }
  return admitReservation({
    ...common, hint: hintFor(knowledge, hardware, shape),
    optionsFor: (asked) => capacityOptions({ level: asked, model: knowledge, profiles, hardware, domainsWith: (gpuType) => domainsWith(nodes, gpuType), pricePerGpu: (gpuType) => pricePerGpu(nodes, gpuType) }),
  });
}

function refusal(reservationId: string, level: ServiceLevel, code: ReservationRefusedV1['code'], reason: string): Admission {
  return { kind: 'refused', data: { reservationId, level, code, reason: reason.slice(0, REASON_LENGTH_MAX), wouldFit: [] } };
}

function hintFor(knowledge: ModelKnowledge, hardware: readonly FleetHardware[], shape: RequestShape): string {
  return knowledge.model === null ? 'what was measured of its replicas is slower than that' : hardwareHint(knowledge.model, [knowledge.precision], hardware, GPU_TYPES, shape);
}

/** A plan never rests on a profile with holes. */
function holesOf(endpoint: EndpointState, knowledge: ModelKnowledge | undefined, { refused }: ProfileAnswer, hardware: readonly FleetHardware[]): string {
  const lacking = [...(knowledge?.missing ?? ['its model version']), ...refused.map(({ gpuType, precision, missing }) => `${missing.join(', ')} of its measurement on ${gpuType} at ${precision}`)];
  return `too little is known of ${endpoint.name} to turn a rate into replicas; missing: ${lacking.join('; ') || `any measurement on ${hardware.map(({ gpu }) => gpu.type).join(', ') || 'hardware that it may run on'}`}. Let a replica run under load so that it is measured, or reserve a number of replicas`;
}

/** A replica as the endpoint is deployed. What it takes of an accelerator follows from its memory and its rules. */
function partOfOne(endpoint: EndpointState, catalog: CatalogState): FleetPart {
  const registered = catalog.modelVersions.get(endpoint.modelVersionId)?.registered ?? null;
  const bytes = registered === null || registered.source.kind === 'attached' ? 0 : replicaMemoryBytes(registered.memory, endpoint.serving);
  const { rules, hardware } = endpoint;
  const nodes = rules?.nodes ?? 1;
  const accelerators = hardware.acceleratorCount * nodes;
  return {
    accelerators, nodes, computeMilli: rules?.computeMilli ?? 0, vramMib: rules?.migProfile ? 0 : bytes / accelerators / MIB, migProfile: rules?.migProfile ?? null,
    cpuMilli: (rules?.cpuMilli ?? 0) * nodes, hostMemoryMib: ((rules?.hostMemoryBytes ?? 0) * nodes) / MIB,
  };
}

function countedOptions(level: ServiceLevel, part: FleetPart, nodes: readonly FleetNode[]): readonly CapacityOption[] {
  const kinds = Map.groupBy(nodes.filter(({ gpuType, sharing }) => (level.gpuType === null || gpuType === level.gpuType) && (part.migProfile === null) === (sharing === 'shares')), ({ gpuType, sharing }) => `${gpuType} ${sharing}`);
  return [...kinds.values()].flatMap(([first]) => {
    const { gpuType, sharing } = first as FleetNode;
    return countedCapacity(level, part, { gpuType, sharing, precision: 'as registered' }, domainsWith(nodes, gpuType), pricePerGpu(nodes, gpuType)) ?? [];
  }).sort((one, other) => (one.capacity.dollarsPerHour ?? 0) - (other.capacity.dollarsPerHour ?? 0));
}

function domainsWith(nodes: readonly FleetNode[], gpuType: string): number {
  return new Set(nodes.filter((node) => node.gpuType === gpuType).map(({ failureDomain }) => failureDomain)).size;
}

/** What the dearest node on demand with the type costs, so that a promise is not cheaper on paper than it turns out. */
function pricePerGpu(nodes: readonly FleetNode[], gpuType: string): number | null {
  const prices = nodes.filter((node) => node.gpuType === gpuType && node.market === 'on_demand').map((node) => node.pricePerGpu);
  return prices.length === 0 ? null : Math.max(...prices);
}

function nodeToAdd(gpuType: string): Omit<FleetNode, 'nodeId' | 'failureDomain'> | undefined {
  const shape = largestShapeWith(gpuType);
  return shape === undefined ? undefined : imaginedNode(shape, 'added');
}

import type { PlacementRefusedV2 } from '@penstock/contract-events';
import { GPU_TYPES } from '../catalogue/gpu-types.js';
import type { Excluded, ExclusionCode } from './candidates.js';
import { nearestMiss, wantedBytes } from './exclusions.js';
import { formatBytes } from './format-bytes.js';
import type { PlacementDemand } from './placement-input.js';
import { acceleratorsOf, bytesOfEach, namesType } from './replica-ways.js';
import { MIB, type RunningFleet } from './running-fleet.js';

/** More candidates than this are not listed in a reason; the best ones are. */
export const CANDIDATES_TOLD_MAX = 100;

export const REASON_LENGTH_MAX = 1_000;

/** A replica that fits nowhere, with the nearest miss and what would fit. Texts hold no figure that changes by itself, so that a refusal reads the same until something changes. */
export function refuseForSpace(demand: PlacementDemand, placedReplicas: number, excluded: readonly Excluded[], fleet: RunningFleet): PlacementRefusedV2 {
  const common = { endpointId: demand.endpointId, wantedReplicas: demand.wanted, placedReplicas };
  const nearest = nearestMiss(excluded);
  if (nearest === undefined) return { ...common, code: 'no_node', reason: 'no node is up: start an agent', candidates: [], hint: null };
  const candidates = excluded.slice(0, CANDIDATES_TOLD_MAX).map(({ node, reason }) => ({ nodeId: node.nodeId, excluded: reason.slice(0, 500) }));
  const isImpossible = (nearest === 'no_room' || nearest === 'no_memory') && !fitsEmpty(demand, fleet);
  const reason = isImpossible ? impossibleReason(demand) : REASONS[nearest](demand);
  const hint = isImpossible || nearest === 'no_matching_accelerator' ? hintFor(demand, fleet, excluded) : null;
  return { ...common, code: isImpossible ? 'impossible' : nearest, reason: reason.slice(0, REASON_LENGTH_MAX), candidates, hint: hint?.slice(0, REASON_LENGTH_MAX) ?? null };
}

/** A replica that nothing can be planned for, since its profile lacks figures. */
export function refuseForHoles(demand: PlacementDemand, placedReplicas: number): PlacementRefusedV2 {
  const { endpointId, wanted, profileHoles } = demand;
  return {
    endpointId, wantedReplicas: wanted, placedReplicas, code: 'impossible', reason: `nothing can be planned for it: its profile lacks ${profileHoles.join(', ')}`.slice(0, REASON_LENGTH_MAX), candidates: [],
    hint: 'register the model version again from files whose header can be read',
  };
}

export function refuseForBackoff(demand: PlacementDemand, placedReplicas: number, backoff: NonNullable<PlacementDemand['backoff']>): PlacementRefusedV2 {
  return {
    endpointId: demand.endpointId, wantedReplicas: demand.wanted, placedReplicas, code: 'start_backoff',
    reason: `${backoff.failuresInRow} starts failed in a row; the last one: ${backoff.lastFailure}`.slice(0, REASON_LENGTH_MAX), candidates: [], hint: null,
  };
}

const REASONS: Readonly<Record<ExclusionCode, (demand: PlacementDemand) => string>> = {
  no_memory: (demand) => `no accelerator has ${wantedBytes(demand)} free: add a node, or lower slots, context or replicas`,
  no_room: (demand) => `${needOf(demand)} nowhere free: add a node, or lower replicas`,
  not_allowed: () => 'every node that could hold it is closed, or excluded by pins, taints or its market: open one, or change the rules of the endpoint',
  no_matching_accelerator: (demand) => `no node has ${demand.acceleratorCount} of type ${demand.rules.migProfile === null ? '' : `${demand.rules.migProfile} of `}${demand.acceleratorType ?? 'any'}: add one, or change the endpoint's hardware`,
  no_engine: (demand) => `no node has the engine ${demand.engine}: install it on a node`,
};

function needOf({ acceleratorCount, rules }: PlacementDemand): string {
  if (rules.nodes > 1) return `${rules.nodes} nodes with ${acceleratorCount} untouched accelerators each are`;
  if (acceleratorCount > 1) return `${acceleratorCount} untouched accelerators in one island are`;
  return rules.migProfile === null ? 'compute, CPU, host memory or slices for it are' : `a ${rules.migProfile} is`;
}

function impossibleReason(demand: PlacementDemand): string {
  const { acceleratorType, acceleratorCount, rules } = demand;
  const onEach = `${wantedBytes(demand)} on ${acceleratorsOf(demand) === 1 ? 'one accelerator' : `each of ${acceleratorsOf(demand)} accelerators`}`;
  const kind = acceleratorType === null ? 'no accelerator of this fleet' : `no ${acceleratorType} of this fleet`;
  return rules.nodes > 1 ? `${kind} could hold ${onEach}, not even empty: it wants ${rules.nodes} nodes with ${acceleratorCount} each` : `${kind} holds ${onEach}, not even empty`;
}

/** Whether the fleet could hold one replica if nothing else were there. */
function fitsEmpty(demand: PlacementDemand, { state }: RunningFleet): boolean {
  const bytes = bytesOfEach(demand);
  return state.pools.some((pool) => {
    if (!namesType(demand, pool)) return false;
    const { migProfile } = demand.rules;
    const memoryMib = pool.book === null ? pool.vramMib : migProfile === null ? Math.max(...pool.book.geometry.profiles.map((profile) => profile.usableMib)) : (pool.book.profile(migProfile)?.usableMib ?? 0);
    if (memoryMib < bytes / MIB) return false;
    const wide = pool.nodes.filter((node) => (state.nodes[node]?.islands ?? []).some((island) => island.length >= demand.acceleratorCount));
    return wide.length >= demand.rules.nodes;
  });
}

const SIZES = [1, 2, 4, 8] as const;

/** What would hold it: hardware of this fleet, else known hardware; or what the asked kind has. */
function hintFor(demand: PlacementDemand, { state }: RunningFleet, excluded: readonly Excluded[]): string {
  const profile = excluded.find(({ reason }) => reason.includes('has no MIG profile'));
  if (profile !== undefined) return profile.reason;
  const types = [...new Set(state.pools.map((pool) => pool.gpuType))].sort().join(', ');
  const { memoryBytes } = demand;
  const here = state.pools.filter((pool) => pool.sharing !== 'mig').flatMap((pool) => {
    const widest = Math.max(...pool.nodes.flatMap((node) => (state.nodes[node]?.islands ?? []).map((island) => island.length)));
    return SIZES.filter((size) => size <= widest && memoryBytes / size <= pool.vramMib * MIB).slice(0, 1).map((size) => ({ text: `${size} x ${pool.gpuType} of this fleet`, dollars: size * pool.pricePerGpu }));
  });
  const known = GPU_TYPES.flatMap((gpu) =>
    SIZES.filter((size) => (size === 1 || gpu.nvlinkGbPerS > 0) && memoryBytes / size <= gpu.usableMib * MIB).slice(0, 1).flatMap((size) => (gpu.price.onDemand === null ? [] : [{ text: `${size} x ${gpu.type}`, dollars: size * gpu.price.onDemand }])));
  const best = [here, known].map((kinds) => [...kinds].sort((one, other) => one.dollars - other.dollars)[0]).find((kind) => kind !== undefined);
  const fits = best === undefined ? `no known accelerators of one machine hold ${formatBytes(memoryBytes)}: spread it over several nodes` : `${best.text} would hold its ${formatBytes(memoryBytes)}`;
  return types === '' ? fits : `${fits}; this fleet has ${types}`;
}

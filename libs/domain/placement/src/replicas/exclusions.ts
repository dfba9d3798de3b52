import type { FleetPool } from '../fleet/fleet-state.js';
import { partOfNode, type Assessment, type Excluded, type ExclusionCode } from './candidates.js';
import { formatBytes } from './format-bytes.js';
import type { PlacementDemand, PlacementNode } from './placement-input.js';
import { bytesOfEach, namesType } from './replica-ways.js';
import { MIB } from './running-fleet.js';

type Problem = Pick<Excluded, 'code' | 'reason'>;

/** Why a replica of the demand must not stand on the node, whatever is free there; undefined where it may. */
export function closedBecause(node: PlacementNode, { rules }: PlacementDemand): string | undefined {
  if (node.drainReason !== null) return `it drains: ${node.drainReason}`;
  if (node.cordonReason !== null) return `it is cordoned: ${node.cordonReason}`;
  if (node.reclaimAtMs !== null) return 'its owner takes it back';
  if (rules.pinnedNodeIds !== null && !rules.pinnedNodeIds.includes(node.nodeId)) return 'it is not among the pinned nodes';
  if (node.market === 'spot' && !rules.allowsSpot) return 'it may be taken back at short notice, and the endpoint allows no spot nodes';
  const taint = node.taints.find((one) => !rules.tolerations.includes(one));
  return taint === undefined ? undefined : `it has the taint ${taint}`;
}

/** Excludes a node by what it is, not by what is free on it. */
export function excludeNode(node: PlacementNode, about: Assessment): Excluded | undefined {
  const { demand, fleet, ways } = about;
  const excluded = (problem: Problem): Excluded => ({ kind: 'excluded', node, ...problem });
  if (!node.engines.some((engine) => engine.kind === demand.engine)) return excluded({ code: 'no_engine', reason: `${demand.engine} is not installed` });
  const named = (fleet.numbersOf.get(node.nodeId) ?? []).flatMap((number) => {
    const index = fleet.state.poolOf[number] as number;
    const pool = fleet.state.pools[index];
    return pool !== undefined && namesType(demand, pool) ? [{ index, pool, islands: fleet.state.nodes[number]?.islands ?? [] }] : [];
  });
  if (named.length === 0) return excluded({ code: 'no_matching_accelerator', reason: mismatch(demand) });
  const wide = named.filter(({ islands }) => islands.some((island) => island.length >= demand.acceleratorCount));
  if (wide.length === 0) return excluded({ code: 'no_matching_accelerator', reason: `fewer than ${demand.acceleratorCount} of one type in one island: ${demand.acceleratorType ?? 'accelerator'}` });
  if (!wide.some(({ index }) => ways.some((way) => way.pool === index))) return excluded(sliceProblem(demand, wide.map(({ pool }) => pool)));
  const closed = closedBecause(node, demand);
  return closed === undefined ? undefined : excluded({ code: 'not_allowed', reason: closed });
}

function mismatch({ acceleratorType, rules }: PlacementDemand): string {
  const type = acceleratorType ?? 'accelerator';
  return rules.migProfile === null ? `no ${type}` : `no ${type} that is split by MIG`;
}

/** MIG is on, and no profile will do: it does not exist, is too small, or one replica wants several accelerators. */
function sliceProblem(demand: PlacementDemand, pools: readonly FleetPool[]): Problem {
  const pool = pools.find(({ book }) => book !== null);
  const { migProfile } = demand.rules;
  const names = pool?.book?.profileNames().join(', ') ?? 'none';
  if (migProfile !== null && pool?.book?.profile(migProfile) === undefined) return { code: 'no_matching_accelerator', reason: `${pool?.gpuType ?? 'it'} has no MIG profile ${migProfile}; it has ${names}` };
  if (demand.acceleratorCount > 1) return { code: 'no_matching_accelerator', reason: 'MIG is on, and its instances have no link to each other' };
  if (migProfile !== null) return { code: 'no_memory', reason: `${wantedBytes(demand)} wanted, ${migProfile} has ${formatBytes((pool?.book?.profile(migProfile)?.usableMib ?? 0) * MIB)}` };
  return { code: 'no_memory', reason: `${wantedBytes(demand)} wanted, its largest MIG instance has ${formatBytes(Math.max(0, ...(pool?.book?.geometry.profiles ?? []).map((profile) => profile.usableMib)) * MIB)}` };
}

/** Why the hardware that the demand names has no place on the node now. */
export function shortage(node: PlacementNode, { fleet, demand, ways }: Assessment): Problem {
  const { state } = fleet;
  const here = (fleet.numbersOf.get(node.nodeId) ?? []).flatMap((number) => ways.filter((way) => state.poolOf[number] === way.pool).map((way) => ({ number, part: way.part })));
  let enough = 0;
  let mostFree = 0;
  for (const { number, part } of here) {
    for (let gpu = state.firstGpu[number] as number; gpu < (state.firstGpu[number + 1] as number); gpu += 1) {
      const isHeld = fleet.acceleratorOf(gpu).isExclusive && (state.owners[gpu] as number) > 0;
      const free = isHeld ? 0 : (state.vramFree[gpu] as number);
      mostFree = Math.max(mostFree, free);
      if (!isHeld && free >= part.vramMib) enough += 1;
    }
  }
  const slice = here.find(({ part }) => part.migProfile !== null)?.part.migProfile ?? null;
  if (enough < demand.acceleratorCount && slice === null) return { code: 'no_memory', reason: memoryShort(demand, mostFree * MIB) };
  if (here.every(({ number, part }) => !state.hostFits(number, partOfNode(part)))) return { code: 'no_room', reason: 'its CPU or host memory is taken' };
  return { code: 'no_room', reason: roomShort(demand, slice) };
}

function roomShort({ acceleratorCount, rules }: PlacementDemand, slice: string | null): string {
  if (slice !== null) return `no slices are free for ${slice}`;
  if (acceleratorCount > 1) return `fewer than ${acceleratorCount} untouched accelerators in one island`;
  if ((rules.computeMilli ?? 0) === 0) return 'all compute of the accelerators with enough memory is set aside for others';
  return `no accelerator has ${(rules.computeMilli ?? 0) / 10} % of its compute free beside the memory`;
}

function memoryShort(demand: PlacementDemand, freeBytes: number): string {
  const each = demand.acceleratorCount === 1 ? 'one accelerator' : `each of ${demand.acceleratorCount} accelerators`;
  return `${wantedBytes(demand)} wanted on ${each}, at most ${formatBytes(freeBytes)} free on one`;
}

export function wantedBytes(demand: PlacementDemand): string {
  return formatBytes(bytesOfEach(demand));
}

/** The exclusion that came closest to a placement: too little room is nearer than a missing engine. */
export function nearestMiss(excluded: readonly Excluded[]): ExclusionCode | undefined {
  return (['no_room', 'no_memory', 'not_allowed', 'no_matching_accelerator', 'no_engine'] as const).find((code) => excluded.some((candidate) => candidate.code === code));
}

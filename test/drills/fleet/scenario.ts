import type { FleetDescriptionInput } from '@penstock/infra-simulated-fleet';
import { randomFrom } from '../../benchmarks/random.js';

/** An endpoint of a run. */
export interface EndpointScript {
  readonly endpointId: string;
  readonly weightBytes: number;
  readonly kvBytesPerToken: number;
  readonly acceleratorType: string | null;
  readonly acceleratorCount: number;
  readonly nodes: number;
  readonly migProfile: string | null;
  readonly allowsSpot: boolean;
  readonly organisationId: string | null;
  readonly wanted: number;
}

/** Something that happens at a moment. `index` picks among what is there then, so that a script stays whole when parts are left out. */
export type Action =
  | { readonly kind: 'want'; readonly atMs: number; readonly endpoint: number; readonly replicas: number }
  /** Promises replicas, whether there is room or not: what was promised comes first, and nothing else is promised by it. */
  | { readonly kind: 'reserve'; readonly atMs: number; readonly endpoint: number; readonly replicas: number; readonly priority: number; readonly forMs: number | null }
  | { readonly kind: 'retire'; readonly atMs: number; readonly endpoint: number }
  | { readonly kind: 'fail-starts'; readonly atMs: number; readonly endpoint: number; readonly count: number }
  | { readonly kind: 'hang-starts'; readonly atMs: number; readonly endpoint: number; readonly count: number }
  | { readonly kind: 'crash-engine'; readonly atMs: number; readonly index: number }
  | { readonly kind: 'fail-node'; readonly atMs: number; readonly node: number; readonly forMs: number | null }
  | { readonly kind: 'cut-node'; readonly atMs: number; readonly node: number; readonly forMs: number }
  | { readonly kind: 'mute-node'; readonly atMs: number; readonly node: number; readonly forMs: number }
  | { readonly kind: 'reclaim-node'; readonly atMs: number; readonly node: number; readonly noticeMs: number; readonly forMs: number | null }
  | { readonly kind: 'close-node'; readonly atMs: number; readonly node: number; readonly isDrain: boolean; readonly forMs: number | null }
  | { readonly kind: 'fail-rack'; readonly atMs: number; readonly node: number; readonly forMs: number }
  /** With the driver that speaks for it, and for good. */
  | { readonly kind: 'lose-rack'; readonly atMs: number; readonly node: number }
  | { readonly kind: 'crash-process'; readonly atMs: number; readonly process: number; readonly inAppends: number; readonly isStored: boolean; readonly forMs: number }
  | { readonly kind: 'cut-process'; readonly atMs: number; readonly process: number; readonly forMs: number }
  | { readonly kind: 'slow-process'; readonly atMs: number; readonly process: number; readonly forMs: number };

export interface Scenario {
  readonly seed: number;
  readonly fleet: FleetDescriptionInput;
  readonly endpoints: readonly EndpointScript[];
  readonly actions: readonly Action[];
  /** Whether the two schedulers hear each other's signals. */
  readonly isSplit: boolean;
  /** Endpoints deploy over this time. */
  readonly deployMs: number;
}

/** Faults and wishes happen before this moment; after it everything heals and the fleet has to come to rest. */
export const TROUBLE_MS = 40_000;

const GIGABYTE = 1_000_000_000;
const CRASH_APPENDS_MAX = 12;
const SWEPT_APPENDS = 40;
const DOWN_MS_MAX = 15_000;
/** Nearly half of all nodes that fail stay away. */
const GONE_CHANCE = 0.4;
const LOST_RACK_CHANCE = 0.3;

interface Dice {
  chance(share: number): boolean;
  /** Whole number from `least` to `most`. */
  between(least: number, most: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

function diceFrom(next: () => number): Dice {
  return {
    chance: (share) => next() < share,
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (items) => items[Math.floor(next() * items.length)] as (typeof items)[number],
  };
}

/** Everything that a run does, from its seed alone. */
export function scenarioOf(seed: number): Scenario {
  const dice = diceFrom(randomFrom(seed));
  const fleet = fleetOf(seed, dice);
  const endpoints = Array.from({ length: dice.between(1, 5) }, (_, index) => endpointOf(index, dice));
  const actions = Array.from({ length: dice.between(2, 12) }, () => actionOf(dice, endpoints.length));
  // One process dies in the n-th append of its life; over the seeds n goes through all of them, stored and not.
  actions.push({ kind: 'crash-process', atMs: 0, process: dice.between(0, 3), inAppends: 1 + (Math.floor(seed / 2) % SWEPT_APPENDS), isStored: seed % 2 === 0, forMs: dice.between(500, DOWN_MS_MAX) });
  return { seed, fleet, endpoints, actions: actions.sort((one, other) => one.atMs - other.atMs), isSplit: dice.chance(0.5), deployMs: dice.pick([0, 500, 5_000]) };
}

function fleetOf(seed: number, dice: Dice): FleetDescriptionInput {
  const group = (): FleetDescriptionInput['nodes'][number] => {
    const shape = dice.pick(['l4-1x', 'l4-4x', 'h100-4x-SXM', 'h100-pcie-pairs', 'hgx-8xA100-SXM']);
    const isCut = shape === 'h100-4x-SXM' && dice.chance(0.5);
    return {
      shape, count: dice.between(1, 3), nodesPerDomain: dice.between(1, 2), market: dice.chance(0.3) ? 'spot' : 'on_demand',
      mig: isCut ? dice.pick([[], [{ profile: '3g.40gb', start: 0 }], [{ profile: '4g.40gb', start: 0 }, { profile: '1g.10gb', start: 5 }]]) : null,
    };
  };
  return { name: 'sim', nodes: Array.from({ length: dice.between(1, 3) }, group), registryGBps: dice.pick([2, 10, 50]), timeScale: 0.1, seed };
}

function endpointOf(index: number, dice: Dice): EndpointScript {
  const common = { endpointId: `ep_${index}`, kvBytesPerToken: dice.pick([0, 131_072]), allowsSpot: dice.chance(0.6), organisationId: dice.pick([null, 'org_a', 'org_b']), wanted: dice.between(0, 4) };
  switch (dice.between(0, 9)) {
    case 0: case 1:
      return { ...common, weightBytes: dice.pick([1, 3]) * GIGABYTE, acceleratorType: 'h100', acceleratorCount: 1, nodes: 1, migProfile: dice.pick(['1g.10gb', '2g.20gb', '3g.40gb']) };
    case 2:
      return { ...common, weightBytes: dice.pick([60, 140]) * GIGABYTE, acceleratorType: dice.pick(['h100', 'a100']), acceleratorCount: dice.pick([2, 4]), nodes: 2, migProfile: null };
    default:
      return { ...common, weightBytes: dice.pick([1, 3, 8, 16, 35, 60]) * GIGABYTE, acceleratorType: dice.pick([null, null, 'l4', 'h100', 'a100']), acceleratorCount: dice.pick([1, 1, 1, 2, 4]), nodes: 1, migProfile: null };
  }
}

function actionOf(dice: Dice, endpoints: number): Action {
  const atMs = dice.between(0, TROUBLE_MS);
  const forMs = dice.between(500, DOWN_MS_MAX);
  const some = dice.between(0, 1_000);
  const endpoint = dice.between(0, endpoints - 1);
  switch (dice.between(0, 17)) {
    case 0: case 1: return { kind: 'want', atMs, endpoint, replicas: dice.between(0, 5) };
    case 2: return { kind: 'retire', atMs, endpoint };
    case 3: return { kind: dice.chance(0.5) ? 'fail-starts' : 'hang-starts', atMs, endpoint, count: dice.between(1, 3) };
    case 4: return { kind: 'crash-engine', atMs, index: some };
    case 5: return { kind: 'fail-node', atMs, node: some, forMs: dice.chance(GONE_CHANCE) ? null : forMs };
    case 6: return { kind: 'cut-node', atMs, node: some, forMs };
    case 7: return { kind: 'mute-node', atMs, node: some, forMs };
    case 8: return { kind: 'reclaim-node', atMs, node: some, noticeMs: dice.between(1_000, 10_000), forMs: dice.chance(GONE_CHANCE) ? null : forMs };
    case 9: return dice.chance(LOST_RACK_CHANCE) ? { kind: 'lose-rack', atMs, node: some } : { kind: 'fail-rack', atMs, node: some, forMs };
    case 10: case 11: return { kind: 'crash-process', atMs, process: some, inAppends: dice.between(1, CRASH_APPENDS_MAX), isStored: dice.chance(0.5), forMs };
    case 12: case 13: return { kind: 'close-node', atMs, node: some, isDrain: dice.chance(0.5), forMs: dice.chance(GONE_CHANCE) ? null : forMs };
    case 14: case 15: return { kind: 'reserve', atMs, endpoint, replicas: dice.between(1, 3), priority: dice.between(0, 1_000), forMs: dice.chance(GONE_CHANCE) ? forMs : null };
    case 16: return { kind: 'cut-process', atMs, process: some, forMs };
    default: return { kind: 'slow-process', atMs, process: some, forMs };
  }
}

import { FairFilling, type ResourceVector, type TenantWants } from './fair-share.js';

/** What one endpoint has, wants, was promised, and who pays for it. */
export interface EndpointClaim {
  readonly endpointId: string;
  /** Whose share its replicas beyond the promised ones count to. */
  readonly tenantId: string;
  readonly weight: number;
  /** Replicas that it never falls under, and how urgent they are. */
  readonly floor: number;
  readonly floorPriority: number;
  /** Of one replica. */
  readonly use: ResourceVector;
  /** Replicas there are, or were decided. */
  readonly count: number;
  readonly wanted: number;
}

/** One replica that is missing. */
export interface RankedUnit {
  readonly endpointId: string;
  /** Which replica of its endpoint it is, from 0. */
  readonly ordinal: number;
  readonly isPromised: boolean;
}

/** The missing replicas, one after the other. Who is next among tenants follows from what was given so far, see {@link FairFilling}. */
export class Ranking {
  readonly heldByTenant: ReadonlyMap<string, ResourceVector>;
  private nextPromised = 0;

  /** `shared` is what of the fleet is not promised. */
  constructor(private readonly promised: readonly RankedUnit[], readonly shared: ResourceVector, private readonly filling: FairFilling<RankedUnit>) {
    this.heldByTenant = filling.heldByTenant;
  }

  next(): RankedUnit | undefined {
    const unit = this.promised[this.nextPromised];
    if (unit === undefined) return this.filling.next();
    this.nextPromised += 1;
    return unit;
  }

  /** The tenant of the claim has a replica of it more, or with a sign of -1 one less, that was not promised. */
  account({ tenantId, use }: EndpointClaim, sign: 1 | -1): void {
    this.filling.account(tenantId, use, sign);
  }
}

/** More units than this are not shared fairly in one round; the next round goes on. */
export const UNITS_RANKED_MAX = 2_000;

/**
 * Promised replicas first, by priority; then the rest as weighted dominant resource fairness grants it. Within a tenant
 * first replicas of every endpoint come before second ones, and among those the larger. `total` is of all nodes that are up.
 */
export function rankUnits(claims: readonly EndpointClaim[], total: ResourceVector): Ranking {
  const promised: (RankedUnit & { readonly priority: number; readonly size: number })[] = [];
  const promisedUse = total.map(() => 0);
  const held = new Map<string, number[]>();
  const wanted = new Map<string, (RankedUnit & { readonly size: number })[]>();
  const weights = new Map<string, number>();
  for (const claim of [...claims].sort((one, other) => (one.endpointId < other.endpointId ? -1 : 1))) {
    const size = Math.max(0, ...claim.use.map((amount, index) => ((total[index] ?? 0) > 0 ? amount / (total[index] as number) : 0)));
    weights.set(claim.tenantId, Math.max(weights.get(claim.tenantId) ?? 0, claim.weight));
    add(promisedUse, claim.use, claim.floor);
    const beyond = Math.max(0, claim.count - claim.floor);
    const tenant = held.get(claim.tenantId) ?? total.map(() => 0);
    add(tenant, claim.use, beyond);
    held.set(claim.tenantId, tenant);
    for (let ordinal = claim.count; ordinal < claim.wanted; ordinal += 1) {
      if (ordinal < claim.floor) promised.push({ endpointId: claim.endpointId, ordinal, isPromised: true, priority: claim.floorPriority, size });
      else wanted.set(claim.tenantId, [...(wanted.get(claim.tenantId) ?? []), { endpointId: claim.endpointId, ordinal, isPromised: false, size }]);
    }
  }
  const shared = total.map((amount, index) => Math.max(0, amount - (promisedUse[index] as number)));
  const tenants = [...held].map(([tenantId, amounts]): TenantWants<RankedUnit> => ({ tenantId, weight: weights.get(tenantId) ?? 1, held: amounts, wanted: (wanted.get(tenantId) ?? []).sort(firstOnesFirst).slice(0, UNITS_RANKED_MAX).map(unitOf) }));
  return new Ranking(promised.sort((one, other) => other.priority - one.priority || firstOnesFirst(one, other)).map(unitOf), shared, new FairFilling(shared, tenants));
}

function unitOf({ endpointId, ordinal, isPromised }: RankedUnit): RankedUnit {
  return { endpointId, ordinal, isPromised };
}

function firstOnesFirst(one: { readonly ordinal: number; readonly size: number; readonly endpointId: string }, other: { readonly ordinal: number; readonly size: number; readonly endpointId: string }): number {
  return one.ordinal - other.ordinal || other.size - one.size || (one.endpointId < other.endpointId ? -1 : 1);
}

function add(sum: number[], use: ResourceVector, times: number): void {
  for (const index of sum.keys()) sum[index] = (sum[index] as number) + (use[index] ?? 0) * times;
}

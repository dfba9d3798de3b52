/** Amounts of each resource, in the same order everywhere: compute, accelerator memory, CPU, host memory. */
export type ResourceVector = readonly number[];

/** Something one tenant wants more of, in its order of preference. */
export interface WantedUnit {
  readonly id: string;
  readonly use: ResourceVector;
}

export interface TenantWants {
  readonly tenantId: string;
  /** Twice the weight, twice the share. Above zero. */
  readonly weight: number;
  /** What it holds already. */
  readonly held: ResourceVector;
  readonly wanted: readonly WantedUnit[];
}

export interface FairShares {
  /** Units in the order in which they are to be placed: the tenant with the smallest weighted share goes first. */
  readonly order: readonly WantedUnit[];
  /** Units that the totals cannot hold even then. */
  readonly beyond: readonly WantedUnit[];
  /** Dominant share of each tenant after all that was granted, 0 to 1, not weighted. */
  readonly shares: ReadonlyMap<string, number>;
}

const TOLERANCE = 1e-9;

/** The largest part that an amount is of any resource. Resources that nobody has do not count. */
export function dominantShare(use: ResourceVector, capacity: ResourceVector): number {
  return use.reduce((most, amount, index) => ((capacity[index] ?? 0) > 0 ? Math.max(most, amount / (capacity[index] as number)) : most), 0);
}

/**
 * Weighted dominant resource fairness (Ghodsi et al., NSDI 2011) by progressive filling: whoever has the smallest dominant
 * share for its weight gets its next unit. A unit that does not fit is passed over, so that nothing which could be used
 * stays unused. Equal shares go by id: the same input gives the same order.
 */
export function shareFairly(capacity: ResourceVector, tenants: readonly TenantWants[]): FairShares {
  const free = capacity.map((amount, index) => amount - tenants.reduce((sum, tenant) => sum + (tenant.held[index] ?? 0), 0));
  const lines = tenants.map((tenant) => ({ tenant, held: capacity.map((_, index) => tenant.held[index] ?? 0), next: 0, share: dominantShare(tenant.held, capacity) }));
  const queue = lines.filter(({ tenant }) => tenant.wanted.length > 0);
  const order: WantedUnit[] = [];
  const beyond: WantedUnit[] = [];
  while (queue.length > 0) {
    const at = poorest(queue);
    const line = queue[at] as FillingLine;
    const unit = line.tenant.wanted[line.next] as WantedUnit;
    line.next += 1;
    if (unit.use.every((amount, index) => amount <= (free[index] ?? 0) + TOLERANCE * Math.max(1, capacity[index] ?? 0))) {
      for (const [index, amount] of unit.use.entries()) {
        free[index] = (free[index] ?? 0) - amount;
        line.held[index] = (line.held[index] ?? 0) + amount;
      }
      line.share = dominantShare(line.held, capacity);
      order.push(unit);
    } else beyond.push(unit);
    if (line.next >= line.tenant.wanted.length) queue.splice(at, 1);
  }
  return { order, beyond, shares: new Map(lines.map(({ tenant, share }) => [tenant.tenantId, share])) };
}

interface FillingLine {
  readonly tenant: TenantWants;
  readonly held: number[];
  next: number;
  share: number;
}

function poorest(queue: readonly FillingLine[]): number {
  let best = 0;
  for (const [index, line] of queue.entries()) {
    const other = queue[best] as FillingLine;
    const difference = line.share / line.tenant.weight - other.share / other.tenant.weight;
    if (difference < -TOLERANCE || (Math.abs(difference) <= TOLERANCE && line.tenant.tenantId < other.tenant.tenantId)) best = index;
  }
  return best;
}

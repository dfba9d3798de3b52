/** Amounts of each resource, in the same order everywhere: compute, accelerator memory, CPU, host memory. */
export type ResourceVector = readonly number[];

export interface TenantWants<Unit> {
  readonly tenantId: string;
  /** Twice the weight, twice the share. Above zero. */
  readonly weight: number;
  /** What it holds already. */
  readonly held: ResourceVector;
  /** What it wants more of, in its order of preference. */
  readonly wanted: readonly Unit[];
}

/** Shares closer than this are equal. */
export const SHARE_TOLERANCE = 1e-9;

/** The largest part that an amount is of any resource. Resources that nobody has do not count. */
export function dominantShare(use: ResourceVector, capacity: ResourceVector): number {
  return use.reduce((most, amount, index) => ((capacity[index] ?? 0) > 0 ? Math.max(most, amount / (capacity[index] as number)) : most), 0);
}

/**
 * Weighted dominant resource fairness (Ghodsi et al., NSDI 2011) by progressive filling: whoever has the smallest dominant share
 * for its weight is asked for its next unit. Only what is then said to be given counts, so that a unit for which there is no
 * place costs its tenant nothing. Equal shares go by id: the same answers give the same order.
 */
export class FairFilling<Unit> {
  /** What each tenant holds, with all that was given and taken so far. */
  readonly heldByTenant: ReadonlyMap<string, ResourceVector>;
  private readonly lines: ReadonlyMap<string, FillingLine<Unit>>;
  private readonly queue: FillingLine<Unit>[];

  constructor(private readonly capacity: ResourceVector, tenants: readonly TenantWants<Unit>[]) {
    const lines = tenants.map((tenant): FillingLine<Unit> => ({ tenant, held: capacity.map((_, index) => tenant.held[index] ?? 0), next: 0, share: dominantShare(tenant.held, capacity) / tenant.weight }));
    this.lines = new Map(lines.map((line) => [line.tenant.tenantId, line]));
    this.heldByTenant = new Map(lines.map(({ tenant, held }) => [tenant.tenantId, held]));
    this.queue = lines.filter(({ tenant }) => tenant.wanted.length > 0);
  }

  /** The next unit of the tenant that has least; undefined when all were asked for. */
  next(): Unit | undefined {
    const at = poorest(this.queue);
    const line = this.queue[at];
    if (line === undefined) return undefined;
    const unit = line.tenant.wanted[line.next];
    line.next += 1;
    if (line.next >= line.tenant.wanted.length) this.queue.splice(at, 1);
    return unit;
  }

  /** The tenant has so much more, or with a sign of -1 so much less. */
  account(tenantId: string, use: ResourceVector, sign: 1 | -1): void {
    const line = this.lines.get(tenantId);
    if (line === undefined) return;
    for (const index of line.held.keys()) line.held[index] = (line.held[index] as number) + sign * (use[index] ?? 0);
    line.share = dominantShare(line.held, this.capacity) / line.tenant.weight;
  }
}

interface FillingLine<Unit> {
  readonly tenant: TenantWants<Unit>;
  readonly held: number[];
  next: number;
  /** For its weight. */
  share: number;
}

function poorest<Unit>(queue: readonly FillingLine<Unit>[]): number {
  let best = 0;
  for (const [index, line] of queue.entries()) {
    const other = queue[best] as FillingLine<Unit>;
    const difference = line.share - other.share;
    if (difference < -SHARE_TOLERANCE || (Math.abs(difference) <= SHARE_TOLERANCE && line.tenant.tenantId < other.tenant.tenantId)) best = index;
  }
  return best;
}

import { asCatalogueEvent, type AccessLimits } from '@penstock/contract-events';
import type { Projection } from '@penstock/kernel';

export type Tier = NonNullable<AccessLimits['priorityTier']>;

/** Weight of a tenant in the sharing of what is not promised, by the tier of its organisation. */
export const TIER_WEIGHTS: Readonly<Record<Tier, number>> = { reserved: 8, paid: 4, 'best-effort': 1, batch: 0.5 };

/** Priority of a tenant's replicas beyond what it was promised; promises bring their own. Lower ones are preempted first. */
export const TIER_PRIORITIES: Readonly<Record<Tier, number>> = { reserved: 300, paid: 200, 'best-effort': 100, batch: 0 };

/** An organisation whose tier nobody set, and endpoints that are for everybody. */
export const TIER_BY_DEFAULT: Tier = 'paid';

export interface TenantTiers {
  /** By organisation; those without an entry have {@link TIER_BY_DEFAULT}. */
  readonly tiers: Map<string, Tier>;
}

/** The tiers of organisations, out of their limits. Keys and projects do not matter to the sharing of a fleet. */
export const tenantTiersProjection: Projection<TenantTiers> = {
  name: 'tenant-tiers',
  version: 1,
  streams: ['EV_ACCESS'],
  initialState: () => ({ tiers: new Map() }),
  apply(state, recorded) {
    const event = asCatalogueEvent(recorded);
    if (event.type !== 'limits.set.v1' || event.data.subject !== 'organisation' || event.data.model !== null) return state;
    const { priorityTier } = event.data.limits;
    if (priorityTier === null) state.tiers.delete(event.data.subjectId);
    else state.tiers.set(event.data.subjectId, priorityTier);
    return state;
  },
  snapshot: (state) => [...state.tiers],
  restore: (snapshot) => ({ tiers: new Map(snapshot as readonly (readonly [string, Tier])[]) }),
};

/** `organisationId` of null stands for what is for everybody. */
export function tierOf(state: TenantTiers, organisationId: string | null): Tier {
  return (organisationId === null ? undefined : state.tiers.get(organisationId)) ?? TIER_BY_DEFAULT;
}

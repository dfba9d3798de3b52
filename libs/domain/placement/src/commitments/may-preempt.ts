import { dominantShare, type ResourceVector } from './fair-share.js';
import type { EndpointClaim, Ranking, RankedUnit } from './rank-units.js';

/**
 * Whether a replica of `victim` that was not promised may be taken for a missing replica of `claim`. For a promise always; else only
 * from another tenant that still has a larger share for its weight after it, than the one who asks then has: so no exchange is
 * ever undone by the next.
 */
export function mayPreempt(unit: RankedUnit, claim: EndpointClaim, victim: EndpointClaim, shares: Pick<Ranking, 'shared' | 'heldByTenant'>): boolean {
  if (unit.isPromised) return victim.endpointId !== claim.endpointId;
  return mayPreemptAll(claim, [victim], shares);
}

/** The same for all that one missing replica takes, which may be more than one replica of one tenant: together they leave it no poorer. */
export function mayPreemptAll(claim: EndpointClaim, victims: readonly EndpointClaim[], { shared, heldByTenant }: Pick<Ranking, 'shared' | 'heldByTenant'>): boolean {
  if (victims.some((victim) => victim.tenantId === claim.tenantId)) return false;
  const shareOf = ({ tenantId, weight }: EndpointClaim, uses: readonly ResourceVector[], sign: 1 | -1): number => {
    const held = (heldByTenant.get(tenantId) ?? shared.map(() => 0)).map((amount, index) => amount + sign * uses.reduce((sum, use) => sum + (use[index] ?? 0), 0));
    return dominantShare(held, shared) / weight;
  };
  const asking = shareOf(claim, [claim.use], 1);
  const losing = [...Map.groupBy(victims, (victim) => victim.tenantId).values()];
  // Where nothing is left to share, all shares are zero and nobody is richer.
  return asking > 0 && losing.every((of) => of.every((victim) => shareOf(victim, of.map(({ use }) => use), -1) >= asking - 1e-12));
}

import { dominantShare, SHARE_TOLERANCE, type ResourceVector } from './fair-share.js';
import type { EndpointClaim, Ranking, RankedUnit } from './rank-units.js';

/** What sums of shares may be off by. */
const ROUNDING = 1e-12;

/**
 * Whether a replica of `victim` that was not promised may be taken for a missing replica of `claim`. For a promise always; else only
 * from another tenant that after it still has no smaller share for its weight than the one who asks then has, and a larger one than
 * who asks has now. The first keeps the next exchange from undoing this one; the second keeps the tenant that gave way behind the one
 * that it gave way to, in the order of every plan until the room is free and taken.
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
  const before = shareOf(claim, [], 1);
  const asking = shareOf(claim, [claim.use], 1);
  const losing = [...Map.groupBy(victims, (victim) => victim.tenantId).values()];
  // Where nothing is left to share, all shares are zero and nobody is richer.
  return asking > 0 && losing.every((of) => of.every((victim) => {
    const left = shareOf(victim, of.map(({ use }) => use), -1);
    return left >= asking - ROUNDING && left > before + SHARE_TOLERANCE;
  }));
}

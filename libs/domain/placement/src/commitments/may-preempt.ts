import { dominantShare, type ResourceVector } from './fair-share.js';
import type { EndpointClaim, Ranking, RankedUnit } from './rank-units.js';

/**
 * Whether a replica of `victim` that was not promised may be taken for a missing replica of `claim`. For a promise always; else only
 * from another tenant that still has a larger share for its weight after it, than the one who asks then has: so no exchange is
 * ever undone by the next.
 */
export function mayPreempt(unit: RankedUnit, claim: EndpointClaim, victim: EndpointClaim, { shared, heldByTenant }: Ranking): boolean {
  if (unit.isPromised) return victim.endpointId !== claim.endpointId;
  if (victim.tenantId === claim.tenantId) return false;
  const after = (tenantId: string, use: ResourceVector, sign: 1 | -1, weight: number): number => dominantShare((heldByTenant.get(tenantId) ?? []).map((amount, index) => amount + sign * (use[index] ?? 0)), shared) / weight;
  const asking = after(claim.tenantId, claim.use, 1, claim.weight);
  // Where nothing is left to share, all shares are zero and nobody is richer.
  return asking > 0 && after(victim.tenantId, victim.use, -1, victim.weight) >= asking - 1e-12;
}

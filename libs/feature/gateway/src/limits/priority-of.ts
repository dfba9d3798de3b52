import type { LimitsSetV1 } from '@penstock/contract-events';
import { priorityTierOf } from '@penstock/domain-access';
import { DEFAULT_PRIORITY, rankOf, type PriorityClass } from '@penstock/domain-routing';

/** What OpenAI's `service_tier` means in our queue; `auto`, and what says nothing, leaves it to the caller's tier. */
const CLASS_OF_TIER: ReadonlyMap<unknown, PriorityClass> = new Map([['default', 'paid'], ['scale', 'reserved'], ['priority', 'reserved'], ['flex', 'best-effort']]);

/** The class that a request waits in: that of the caller's tier, or a lower one that the request itself asks for. None raises itself. */
export function priorityOf(limits: readonly LimitsSetV1[], serviceTier: unknown): PriorityClass {
  const tier = priorityTierOf(limits) ?? DEFAULT_PRIORITY;
  const asked = CLASS_OF_TIER.get(serviceTier) ?? tier;
  return rankOf(asked) > rankOf(tier) ? asked : tier;
}

/** Who waits less when there is not enough: the first class is served before the second. */
export const priorityClasses = ['reserved', 'paid', 'best-effort', 'batch'] as const;
export type PriorityClass = (typeof priorityClasses)[number];

/** Requests that do not say otherwise. */
export const DEFAULT_PRIORITY: PriorityClass = 'paid';

/** 0 is served first. */
export function rankOf(priority: PriorityClass): number {
  return priorityClasses.indexOf(priority);
}

/** Middle value; of an even count the mean of the two in the middle. Zero for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length / 2;
  return sorted.length === 0 ? 0 : ((sorted[Math.floor(middle - 0.5)] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** The value that the share `share` of all values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Median with the smallest and the largest value, rounded for people. */
export function spread(values: readonly number[]): { readonly median: number; readonly min: number; readonly max: number } {
  const round = (value: number): number => Math.round(value * 100) / 100;
  return { median: round(median(values)), min: round(Math.min(...values)), max: round(Math.max(...values)) };
}

/** A new order of the same items, by a linear congruential step (Numerical Recipes' constants). */
export function shuffled<Item>(items: readonly Item[], seed: number): Item[] {
  const result = [...items];
  let state = seed >>> 0 || 1;
  for (let index = result.length - 1; index > 0; index -= 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = state % (index + 1);
    [result[index], result[other]] = [result[other] as Item, result[index] as Item];
  }
  return result;
}

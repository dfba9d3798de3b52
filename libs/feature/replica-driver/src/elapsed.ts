import type { Clock } from '@penstock/kernel';

/** Since when something has been so, by key, on this process's own clock. What is not so any more is forgotten. */
export class Elapsed {
  private readonly since = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Milliseconds for which `isSo` has held without a break; 0 while it does not hold. */
  of(key: string, isSo: boolean): number {
    if (!isSo) {
      this.since.delete(key);
      return 0;
    }
    const sinceMs = this.since.get(key);
    if (sinceMs !== undefined) return this.clock.now() - sinceMs;
    this.since.set(key, this.clock.now());
    return 0;
  }

  keepOnly(isKnown: (key: string) => boolean): void {
    for (const key of this.since.keys()) if (!isKnown(key)) this.since.delete(key);
  }
}

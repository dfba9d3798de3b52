/** Bounds how many lines run at once; who waits longest goes next, so jobs take turns. */
export class LineSlots {
  private inUse = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly max: number) {}

  /** Runs `work` once a slot is free. */
  async with<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.inUse >= this.max) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.inUse += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      // The slot passes on to who waits, so the count stays.
      if (next === undefined) this.inUse -= 1;
      else next();
    }
  }
}

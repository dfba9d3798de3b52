/** There is no room for one more. */
export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

/** Runs at most `slots` works at once and keeps at most `queueMax` more waiting, first come first served. */
export class WorkQueue {
  private active = 0;
  private readonly queue: (() => void)[] = [];

  constructor(private readonly slots: number, private readonly queueMax: number) {}

  get running(): number {
    return this.active;
  }

  get waiting(): number {
    return this.queue.length;
  }

  /** Rejects with {@link QueueFullError} at once when there is no room. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.active >= this.slots) {
      if (this.queue.length >= this.queueMax) throw new QueueFullError(`${this.queue.length} inferences wait already`);
      // Whoever ends hands its slot over, so the number of running ones does not change here.
      await new Promise<void>((resolve) => this.queue.push(resolve));
    } else {
      this.active += 1;
    }
    try {
      return await work();
    } finally {
      const next = this.queue.shift();
      if (next === undefined) this.active -= 1;
      else next();
    }
  }
}

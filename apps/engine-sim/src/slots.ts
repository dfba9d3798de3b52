/** Sequences that run at once, and a first-come queue before them. */
export class Slots {
  private running = 0;
  private readonly queue: (() => void)[] = [];

  constructor(private readonly max: number) {}

  get runningCount(): number {
    return this.running;
  }

  get waitingCount(): number {
    return this.queue.length;
  }

  /** Waits for a slot. Returns false when `signal` fired first; a slot that was got must be given back with `release`. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.running < this.max) {
      this.running += 1;
      return true;
    }
    return new Promise<boolean>((resolve) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        this.running += 1;
        resolve(true);
      };
      const leave = (): void => {
        const position = this.queue.indexOf(enter);
        if (position >= 0) this.queue.splice(position, 1);
        resolve(false);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.queue.push(enter);
    });
  }

  release(): void {
    this.running -= 1;
    this.queue.shift()?.();
  }
}

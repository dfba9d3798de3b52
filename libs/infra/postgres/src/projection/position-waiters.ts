interface Waiter {
  readonly stream: string;
  readonly sequence: number;
  readonly settle: (error?: Error) => void;
}

/** More callers than this waiting for one projection is a fault. */
export const POSITION_WAITERS_MAX = 10_000;

/** Callers who wait until a projection has come to a position. */
export class PositionWaiters {
  private waiters: Waiter[] = [];

  /** Resolves once {@link advance} reaches `sequence`; rejects after `timeoutMs`. */
  wait(stream: string, sequence: number, timeoutMs: number): Promise<void> {
    if (this.waiters.length >= POSITION_WAITERS_MAX) return Promise.reject(new Error(`More than ${POSITION_WAITERS_MAX} callers wait for the projection already.`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiter.settle(new Error(`${stream} ${sequence} was not applied within ${timeoutMs} ms.`)), timeoutMs);
      const waiter: Waiter = {
        stream,
        sequence,
        settle: (error) => {
          clearTimeout(timer);
          this.waiters = this.waiters.filter((candidate) => candidate !== waiter);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.waiters.push(waiter);
    });
  }

  advance(stream: string, position: number): void {
    for (const waiter of this.waiters.filter((candidate) => candidate.stream === stream && candidate.sequence <= position)) waiter.settle();
  }

  rejectAll(error: Error): void {
    for (const waiter of this.waiters) waiter.settle(error);
  }
}

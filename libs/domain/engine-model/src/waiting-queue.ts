import type { Sequence } from './sequence.js';

/** First come, first served, except that those thrown back go in front. Ended ones are dropped when their turn comes. */
export class WaitingQueue {
  private front: Sequence[] = [];
  private back: Sequence[] = [];
  private taken = 0;
  private live = 0;

  get size(): number {
    return this.live;
  }

  add(sequence: Sequence): void {
    this.back.push(sequence);
    this.live += 1;
  }

  putBack(sequence: Sequence): void {
    this.front.push(sequence);
    this.live += 1;
  }

  /** A waiting sequence has ended; it counts no longer. */
  ended(): void {
    this.live -= 1;
  }

  next(): Sequence | undefined {
    for (;;) {
      const sequence = this.front.at(-1) ?? this.back[this.taken];
      if (sequence === undefined || sequence.state !== 'ended') return sequence;
      this.drop();
    }
  }

  /** Takes what `next` gave. */
  take(): void {
    this.drop();
    this.live -= 1;
  }

  private drop(): void {
    if (this.front.pop() !== undefined) return;
    this.taken += 1;
    if (this.taken < 1_024 || this.taken * 2 < this.back.length) return;
    this.back = this.back.slice(this.taken);
    this.taken = 0;
  }
}

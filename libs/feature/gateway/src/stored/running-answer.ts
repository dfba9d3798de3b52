import { SHARED_RECORD_BYTES_MAX, type Clock, type Logger, type Timers } from '@penstock/kernel';
import type { AnswerHead } from './answer-head.js';
import type { AnswerStore } from './answer-store.js';

/** A stored answer has at most so many bytes. */
export const ANSWER_BYTES_MAX = 16 * 1_024 * 1_024;
/** What arrived within this time is stored together. */
const FLUSH_DELAY_MS = 200;
const TOUCH_INTERVAL_MS = 5_000;

export interface RunningAnswerParts {
  readonly store: AnswerStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** An answer while this gateway makes it: in memory for those who wait here, and a little later in the store for all others. */
export class RunningAnswer {
  readonly pieces: Uint8Array[] = [];
  bytes = 0;
  isOver = false;
  private stored: Uint8Array[] = [];
  private waiters: (() => void)[] = [];
  private writing: Promise<void> = Promise.resolve();
  private isFlushDue = false;
  private readonly stopTouching: () => void;

  constructor(readonly key: string, public head: AnswerHead, private revision: number, private readonly parts: RunningAnswerParts) {
    this.stopTouching = parts.timers.every(TOUCH_INTERVAL_MS, () => this.flush());
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.head = { ...this.head, status, headers: { ...headers } };
    this.notify();
  }

  /** False when the answer has become too large to be stored. */
  add(piece: Uint8Array): boolean {
    this.bytes += piece.length;
    if (this.bytes > ANSWER_BYTES_MAX) {
      this.head = { ...this.head, isTruncated: true };
      return false;
    }
    this.pieces.push(piece);
    this.stored.push(piece);
    this.notify();
    if (!this.isFlushDue) {
      this.isFlushDue = true;
      this.parts.timers.after(FLUSH_DELAY_MS, () => {
        this.isFlushDue = false;
        this.flush();
      });
    }
    return true;
  }

  /** Resolves at the next change. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /** Ends it. `keep` stores it as done, `forget` lets the key be used again, and `abandon` leaves it for another gateway to make again. */
  async end(fate: 'keep' | 'forget' | 'abandon'): Promise<void> {
    this.stopTouching();
    if (fate === 'keep') this.head = { ...this.head, state: 'done' };
    this.isOver = true;
    this.notify();
    if (fate === 'keep') {
      this.flush();
      await this.writing;
      return;
    }
    await this.writing;
    await (fate === 'forget' ? this.parts.store.remove(this.key) : this.writeHead({ ...this.head, touchedAtMs: 0 })).catch((error: unknown) => this.warn(error));
  }

  private notify(): void {
    for (const resolve of this.waiters.splice(0)) resolve();
  }

  private flush(): void {
    this.writing = this.writing.then(() => this.store()).catch((error: unknown) => this.warn(error));
  }

  /** Pieces first, so that a head never promises one that is not there. */
  private async store(): Promise<void> {
    const bytes = Buffer.concat(this.stored.splice(0));
    const { attempt } = this.head;
    let { pieces } = this.head;
    for (let start = 0; start < bytes.length; start += SHARED_RECORD_BYTES_MAX) {
      await this.parts.store.putPiece(this.key, attempt, pieces, bytes.subarray(start, start + SHARED_RECORD_BYTES_MAX));
      pieces += 1;
    }
    this.head = { ...this.head, pieces, touchedAtMs: this.parts.clock.now() };
    await this.writeHead(this.head);
  }

  private async writeHead(head: AnswerHead): Promise<void> {
    const revision = await this.parts.store.update(this.key, head, this.revision);
    if (revision !== undefined) this.revision = revision;
  }

  private warn(error: unknown): void {
    this.parts.logger.warn({ err: error, requestId: this.head.requestId }, 'an answer could not be stored; it cannot be given out again');
  }
}

import type { Clock, Timers } from '@penstock/kernel';
import { isDeserted, type AnswerHead } from './answer-head.js';
import type { AnswerStore } from './answer-store.js';
import type { RunningAnswer } from './running-answer.js';

/** What there is of an answer beyond a position. `head` has a status once the answer has begun. */
export interface AnswerNews {
  readonly head: AnswerHead;
  readonly pieces: readonly Uint8Array[];
  /** No more will come. */
  readonly isOver: boolean;
}

/** An answer that is being made or was made, here or at another gateway. */
export interface AnswerSource {
  /** Resolves once there is something beyond the first `known` pieces, or after a while without; undefined when the answer is lost. */
  after(known: number): Promise<AnswerNews | undefined>;
}

/** How often another gateway's answer is looked at. */
const POLL_INTERVAL_MS = 200;
/** Pieces that one look fetches. */
const PIECES_PER_LOOK = 16;

/** An answer of this process. */
export function localSource(answer: RunningAnswer): AnswerSource {
  return {
    async after(known) {
      if (answer.pieces.length <= known && !answer.isOver) await answer.changed();
      return { head: answer.head, pieces: answer.pieces.slice(known), isOver: answer.isOver };
    },
  };
}

/** An answer in the store, whoever makes it. */
export function storedSource(store: AnswerStore, key: string, attempt: number, ports: { readonly clock: Clock; readonly timers: Timers }): AnswerSource {
  return {
    async after(known) {
      for (;;) {
        const found = await store.find(key);
        if (found === undefined || found.head.attempt !== attempt) return undefined;
        const { head } = found;
        const until = Math.min(head.pieces, known + PIECES_PER_LOOK);
        const pieces = await Promise.all(Array.from({ length: Math.max(0, until - known) }, (_, index) => store.piece(key, attempt, known + index)));
        const whole = pieces.filter((piece) => piece !== undefined);
        if (whole.length < pieces.length) return undefined;
        const isOver = head.state === 'done' && until >= head.pieces;
        if (whole.length > 0 || isOver) return { head, pieces: whole, isOver };
        if (isDeserted(head, ports.clock.now())) return undefined;
        await new Promise<void>((resolve) => ports.timers.after(POLL_INTERVAL_MS, resolve));
      }
    },
  };
}

import type { Logger, RecordedEvent } from '@penstock/kernel';
import { classifyFailure, describeFailure } from '../connection/classify-failure.js';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { applyEvents, skipPoison, type ApplyOutcome } from './apply-events.js';
import { FoldFailure } from './fold-batch.js';
import { waitBeforeRetry } from './retry-delay.js';
import type { TableProjection } from './table-projection.js';

/** Events of one transaction. */
export const BATCH_EVENTS_MAX = 500;

/** How often an event that the tables refuse is tried alone before it is left out. */
export const POISON_TRIES_MAX = 3;

export interface PoisonedEvent {
  readonly projection: string;
  readonly event: RecordedEvent;
  readonly reason: string;
}
export type PoisonHandler = (poisoned: PoisonedEvent) => Promise<void>;

export type ApplierEnd =
  | { readonly kind: 'closed' }
  /** The checkpoint lies before what was read already: the database was restored or rebuilt. Read again from there. */
  | { readonly kind: 'rewound' }
  | { readonly kind: 'replaced'; readonly version: number };

export interface StreamApplierOptions {
  readonly connection: PostgresConnection;
  readonly projection: TableProjection;
  readonly logger: Logger;
  readonly onPoison?: PoisonHandler | undefined;
  readonly stream: string;
  readonly position: number;
  readonly signal: AbortSignal;
  readonly onApplied: (position: number) => void;
  readonly onProblem: (problem: string | undefined) => void;
}

/** Applies the batches of one stream in order, each exactly once, for as long as its checkpoint stands where it believes. */
export class StreamApplier {
  position: number;
  /** Settles once nothing more will be applied. */
  readonly ended: Promise<ApplierEnd>;
  private end!: (end: ApplierEnd) => void;
  private hasEnded = false;

  constructor(private readonly options: StreamApplierOptions) {
    this.position = options.position;
    this.ended = new Promise((resolve) => {
      this.end = (end) => {
        this.hasEnded = true;
        resolve(end);
      };
    });
    if (options.signal.aborted) this.end({ kind: 'closed' });
    else options.signal.addEventListener('abort', () => this.end({ kind: 'closed' }), { once: true });
  }

  /** Takes one batch of the log, which reaches to `throughSequence`. Resolves once it is committed, or once the applier has ended; never rejects. */
  async apply(events: readonly RecordedEvent[], throughSequence: number): Promise<void> {
    for (let start = 0; start < events.length && !this.hasEnded; start += BATCH_EVENTS_MAX) {
      const batch = events.slice(start, start + BATCH_EVENTS_MAX);
      await this.applyThrough(batch, batch.at(-1)?.sequence ?? throughSequence);
    }
    // Behind the last event there may be ones that the log could not read; the checkpoint passes them too.
    await this.applyThrough([], throughSequence);
  }

  private async applyThrough(events: readonly RecordedEvent[], to: number): Promise<void> {
    const { connection, projection, stream, signal } = this.options;
    for (let failures = 1; !this.hasEnded && this.position < to; failures += 1) {
      const fresh = events.filter((event) => event.sequence > this.position);
      const [first] = fresh;
      try {
        this.settle(await applyEvents(connection, projection, { stream, from: this.position, to }, fresh), to);
      } catch (error) {
        if (first === undefined || !isPoison(error)) {
          await this.pauseAfter(error, failures);
        } else if (fresh.length > 1) {
          for (const event of fresh) await this.applyThrough([event], event.sequence);
        } else if (failures < POISON_TRIES_MAX) {
          await waitBeforeRetry(failures, signal);
        } else {
          await this.leaveOut(first, describeFailure(error));
        }
      }
    }
  }

  private async leaveOut(event: RecordedEvent, reason: string): Promise<void> {
    const { connection, projection, stream, logger, onPoison } = this.options;
    logger.error({ projection: projection.name, stream, sequence: event.sequence, type: event.type, reason }, 'event cannot be projected and is left out');
    for (let failures = 1; !this.hasEnded && this.position < event.sequence; failures += 1) {
      try {
        // Told first: a crash in between tells it twice, never not at all.
        await onPoison?.({ projection: projection.name, event, reason });
        this.settle(await skipPoison(connection, projection, { stream, from: this.position, to: event.sequence }, event, reason), event.sequence);
      } catch (error) {
        await this.pauseAfter(error, failures);
      }
    }
  }

  private settle(outcome: ApplyOutcome, to: number): void {
    this.options.onProblem(undefined);
    switch (outcome.kind) {
      case 'applied':
        return this.moveTo(to);
      case 'moved':
        // Another projector was faster: what it applied is dropped from the batch on the next try.
        return outcome.lastSequence > this.position ? this.moveTo(outcome.lastSequence) : this.end({ kind: 'rewound' });
      case 'replaced':
        return this.end(outcome.version === null ? { kind: 'rewound' } : { kind: 'replaced', version: outcome.version });
    }
  }

  private moveTo(position: number): void {
    this.position = position;
    this.options.onApplied(position);
  }

  private async pauseAfter(error: unknown, failures: number): Promise<void> {
    const { projection, stream, logger, signal, onProblem } = this.options;
    onProblem(`could not write: ${describeFailure(error)}`);
    logger.warn({ projection: projection.name, stream, err: error, failures }, 'projection could not write; trying again');
    await waitBeforeRetry(failures, signal);
  }
}

function isPoison(error: unknown): boolean {
  return error instanceof FoldFailure || classifyFailure(error) === 'data';
}

import type { Lease } from '@penstock/contract-commands';
import {
  brokenAnswerFault, ChatStream, dialectOf, failedFault, normaliseAnswer, noUsage, SseDecoder,
  type AnswerIdentity, type ChatAnswer, type ChatChunk, type EngineDialect, type EngineFault, type RunningUsage,
} from '@penstock/domain-serving';
import type { Dispatcher } from 'undici';
import { EngineCall, isStaleConnection, type EngineEnd, type EngineListener } from './engine-call.js';

/** An error body of an engine is read up to here. In characters. */
const ERROR_BODY_MAX = 64 * 1_024;
/** A whole answer larger than this is refused. In characters. */
const ANSWER_MAX = 64 * 1_024 * 1_024;

const timeoutFault = (what: string): EngineFault => ({ code: 'engine_timeout', message: `The model ${what} in time. Try again.`, param: null, retryElsewhere: true });

export type AttemptOutcome =
  | { readonly kind: 'completed'; readonly usage: RunningUsage; readonly finishReason: string; readonly tail: readonly ChatChunk[]; readonly answer: ChatAnswer | undefined }
  | { readonly kind: 'failed'; readonly fault: EngineFault }
  | { readonly kind: 'aborted' };

export interface AttemptOptions {
  readonly lease: Lease;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly identity: AnswerIdentity;
  /** Whether the engine was asked for a stream. */
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly now: () => number;
  readonly limits: { readonly firstTokenMs: number; readonly chunkGapMs: number; readonly wholeAnswerMs: number };
  /** Takes what is ready for the client and returns whether more may come. */
  readonly onChunks: (chunks: readonly ChatChunk[], usage: RunningUsage) => boolean;
}

/** One try at one replica: sends the request, reads what comes, and keeps the time. */
export class EngineAttempt implements EngineListener {
  private call = new EngineCall();
  private readonly dialect: EngineDialect;
  private readonly stream: ChatStream;
  private decoder = new SseDecoder();
  private status = 0;
  private text = '';
  private lastEventMs: number;
  private hasEvents = false;
  private isPaused = false;
  private settle: (outcome: AttemptOutcome) => void = () => undefined;
  private isSettled = false;

  constructor(private readonly options: AttemptOptions) {
    this.dialect = dialectOf(options.lease.engine);
    this.stream = new ChatStream(options.identity, { dialect: this.dialect, includeUsage: options.includeUsage });
    this.lastEventMs = options.now();
  }

  /** Sends the request over `dispatcher`, and over one of `fresh` when the engine had just closed the connection. */
  run(dispatcher: Dispatcher, fresh: () => Dispatcher): Promise<AttemptOutcome> {
    const outcome = new Promise<AttemptOutcome>((resolve) => {
      this.settle = resolve;
    });
    void this.send(dispatcher, fresh);
    return outcome;
  }

  abort(): void {
    this.finish({ kind: 'aborted' });
  }

  resume(): void {
    this.isPaused = false;
    this.lastEventMs = this.options.now();
    this.call.resume();
  }

  /** Fails the attempt when the engine let a time limit pass. */
  tick(nowMs: number): void {
    const { firstTokenMs, chunkGapMs, wholeAnswerMs } = this.options.limits;
    const waitedMs = nowMs - this.lastEventMs;
    if (this.isSettled || this.isPaused) return;
    if (!this.options.stream) {
      if (waitedMs >= wholeAnswerMs) this.fail(timeoutFault('did not answer'));
    } else if (this.hasEvents ? waitedMs >= chunkGapMs : waitedMs >= firstTokenMs) {
      this.fail(timeoutFault(this.hasEvents ? 'did not go on with its answer' : 'did not begin to answer'));
    }
  }

  onStatus(status: number): void {
    this.status = status;
  }

  onText(text: string): void {
    if (this.isSettled) return;
    if (this.status >= 400 || !this.options.stream) this.collect(text);
    else this.readEvents(() => this.decoder.push(text));
  }

  private async send(dispatcher: Dispatcher, fresh: () => Dispatcher): Promise<void> {
    const { lease, body, headers } = this.options;
    const { pathname } = new URL(lease.url);
    const request = { path: `${pathname.replace(/\/$/, '')}/v1/chat/completions`, body, headers };
    let end = await this.call.send(dispatcher, request, this);
    if (isStaleConnection(end) && !this.isSettled) {
      this.call = new EngineCall();
      const client = fresh();
      end = await this.call.send(client, request, this);
      client.close().catch(() => undefined);
    }
    this.onEnd(end);
  }

  private onEnd(end: EngineEnd): void {
    if (this.isSettled) return;
    if (end.kind === 'aborted') this.finish({ kind: 'aborted' });
    else if (end.kind === 'lost') this.fail(end.beforeAnswer ? failedFault : brokenAnswerFault);
    else if (this.status >= 400 || !this.options.stream) this.finishWhole();
    else this.readEvents(() => this.decoder.end(), true);
  }

  private collect(text: string): void {
    this.text += text;
    if (this.status >= 400 && this.text.length > ERROR_BODY_MAX) this.finishWhole();
    else if (this.text.length > ANSWER_MAX) this.fail(brokenAnswerFault);
  }

  private finishWhole(): void {
    const result = normaliseAnswer(this.status, this.text, this.options.identity, this.dialect);
    if (result.kind === 'fault') this.fail(result.fault);
    else this.finish({ kind: 'completed', usage: result.usage, finishReason: result.finishReason, tail: [], answer: result.answer });
  }

  private readEvents(read: () => readonly string[], isLast = false): void {
    let events: readonly string[];
    try {
      events = read();
    } catch {
      this.fail(brokenAnswerFault);
      return;
    }
    const chunks: ChatChunk[] = [];
    for (const event of events) {
      const step = this.stream.push(event);
      chunks.push(...step.chunks);
      if (step.outcome !== 'open') {
        this.conclude(chunks, step.outcome);
        return;
      }
    }
    if (events.length > 0) {
      this.lastEventMs = this.options.now();
      this.hasEvents ||= chunks.length > 0;
    }
    if (isLast) {
      const step = this.stream.end();
      this.conclude([...chunks, ...step.chunks], step.outcome === 'open' ? brokenAnswerFault : step.outcome);
    } else if (chunks.length > 0 && !this.options.onChunks(chunks, this.stream.usage())) {
      this.isPaused = true;
      this.call.pause();
    }
  }

  private conclude(chunks: readonly ChatChunk[], outcome: 'completed' | EngineFault): void {
    if (outcome === 'completed') {
      this.finish({ kind: 'completed', usage: this.stream.usage(), finishReason: this.stream.finishReason() ?? 'stop', tail: chunks, answer: undefined });
      return;
    }
    if (chunks.length > 0) this.options.onChunks(chunks, this.stream.usage());
    this.fail(outcome);
  }

  private fail(fault: EngineFault): void {
    this.finish({ kind: 'failed', fault });
  }

  private finish(outcome: AttemptOutcome): void {
    if (this.isSettled) return;
    this.isSettled = true;
    // A completed answer ends by itself, and its connection can be used again.
    if (outcome.kind !== 'completed') this.call.abort(outcome.kind);
    else this.call.resume();
    this.settle(outcome);
  }
}

/** Usage of an attempt that delivered nothing. */
export const nothingDelivered: RunningUsage = noUsage;

import type { Lease } from '@penstock/contract-commands';
import type { AnswerLimits } from '@penstock/domain-catalog';
import {
  brokenAnswerFault, ChatStream, dialectOf, failedFault, normaliseAnswer, noUsage, SseDecoder, sseFrame,
  type AnswerIdentity, type ChatAnswer, type ChatChunk, type EngineDialect, type EngineFault, type RunningUsage,
} from '@penstock/domain-serving';
import type { Clock } from '@penstock/kernel';
import { totalTimeoutFault } from '../frame/exchange-end.js';
import { EngineCall, engineHeaders, isStaleConnection, type EngineEnd, type EngineListener, type RequestOrigin } from './engine-call.js';
import type { ReplicaClients } from './replica-clients.js';

/** An error body of an engine is read up to here. In characters. */
const ERROR_BODY_MAX = 64 * 1_024;
/** A whole answer larger than this is refused. In characters. */
const ANSWER_MAX = 64 * 1_024 * 1_024;

const timeoutFault = (what: string): EngineFault => ({ code: 'engine_timeout', message: `The model ${what} in time. Try again.`, param: null, retryElsewhere: true });

export type AttemptOutcome =
  | { readonly kind: 'completed'; readonly usage: RunningUsage; readonly finishReason: string; readonly tail: readonly ChatChunk[]; /** The same as `tail`, as events of a stream, for an attempt that hands on text. */ readonly tailText: string; readonly answer: ChatAnswer | undefined }
  | { readonly kind: 'failed'; readonly fault: EngineFault }
  | { readonly kind: 'aborted' };

/** What takes the answer of an attempt, and returns whether it can take more. */
export interface AttemptSink {
  onChunks(chunks: readonly ChatChunk[]): boolean;
  /** Events of a stream that are ready for the client, in place of chunks; most of them never become objects. */
  onText(text: string): boolean;
}

export interface AttemptOptions {
  readonly lease: Lease;
  readonly body: string;
  readonly origin: RequestOrigin;
  readonly clients: ReplicaClients;
  readonly identity: AnswerIdentity;
  /** Whether the engine was asked for a stream. */
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Tokens that the request allows, over all choices. */
  readonly tokensMax: number;
  readonly clock: Clock;
  readonly limits: AnswerLimits;
  /** Whether `sink` gets text. */
  readonly asText: boolean;
  readonly sink: AttemptSink;
}

/** What one read of the engine's stream made ready for the client: text, or chunks. */
class Ready {
  text = '';
  readonly chunks: ChatChunk[] = [];

  constructor(readonly asText: boolean) {}

  get isEmpty(): boolean {
    return this.text === '' && this.chunks.length === 0;
  }

  add(chunks: readonly ChatChunk[]): void {
    if (!this.asText) this.chunks.push(...chunks);
    else for (const chunk of chunks) this.text += sseFrame(chunk);
  }
}

/** One try at one replica: sends the request, reads what comes, and keeps the time. */
export class EngineAttempt implements EngineListener {
  private call = new EngineCall();
  private readonly dialect: EngineDialect;
  private chatStream: ChatStream | undefined;
  private readonly decoder = new SseDecoder();
  private status = 0;
  private text = '';
  private readonly sentAtMs: number;
  private lastEventMs: number;
  private hasEvents = false;
  private isPaused = false;
  private settle: (outcome: AttemptOutcome) => void = () => undefined;
  private isSettled = false;

  constructor(private readonly options: AttemptOptions) {
    this.dialect = dialectOf(options.lease.engine);
    this.sentAtMs = options.clock.now();
    this.lastEventMs = this.sentAtMs;
  }

  /** Sends the request; once more over a connection that was never used when the engine had just closed the first one. */
  run(): Promise<AttemptOutcome> {
    const outcome = new Promise<AttemptOutcome>((resolve) => {
      this.settle = resolve;
    });
    void this.send();
    return outcome;
  }

  /** What the engine said of usage up to the last event that was handed on. */
  usage(): RunningUsage {
    return this.chatStream?.usage() ?? noUsage;
  }

  abort(): void {
    this.finish({ kind: 'aborted' });
  }

  resume(): void {
    this.isPaused = false;
    this.lastEventMs = this.options.clock.now();
    this.call.resume();
  }

  /** Fails the attempt when the engine let a time limit pass. */
  tick(nowMs: number): void {
    const { firstTokenMs, chunkGapMs, totalMs } = this.options.limits;
    const waitedMs = nowMs - this.lastEventMs;
    if (this.isSettled) return;
    if (!this.options.stream) {
      if (waitedMs >= totalMs) this.fail(timeoutFault('did not answer'));
    } else if (this.hasEvents && nowMs - this.sentAtMs >= totalMs) {
      // A client that reads too slowly for it does not keep the slot either.
      this.fail(totalTimeoutFault(totalMs));
    } else if (this.isPaused) {
      return;
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

  private async send(): Promise<void> {
    const { body, origin, stream, clients, lease: { url } } = this.options;
    const request = { path: '/v1/chat/completions', body, headers: engineHeaders(origin, stream ? 'text/event-stream' : 'application/json') };
    let end = await this.call.send(clients.get(url), request, this);
    if (isStaleConnection(end) && !this.isSettled) {
      this.call = new EngineCall();
      end = await this.call.send(clients.fresh(url), request, this);
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
    else this.finish({ kind: 'completed', usage: this.credible(result.usage), finishReason: result.finishReason, tail: [], tailText: '', answer: result.answer });
  }

  /** A whole answer has no pieces to count, so a claim beyond what was allowed is cut to it. */
  private credible(usage: RunningUsage): RunningUsage {
    const { tokensMax } = this.options;
    return usage.completionTokens <= tokensMax ? usage : { ...usage, completionTokens: tokensMax, known: false };
  }

  /** Made for the first event; an answer that comes whole needs none. */
  private get stream(): ChatStream {
    return (this.chatStream ??= new ChatStream(this.options.identity, { dialect: this.dialect, includeUsage: this.options.includeUsage, tokensMax: this.options.tokensMax }));
  }

  private readEvents(read: () => readonly string[], isLast = false): void {
    let events: readonly string[];
    try {
      events = read();
    } catch {
      this.fail(brokenAnswerFault);
      return;
    }
    if (!isLast && events.length === 1 && this.handOnAlone(events[0] ?? '')) return;
    const ready = new Ready(this.options.asText);
    for (const event of events) {
      const frame = ready.asText ? this.stream.frameOf(event) : undefined;
      if (frame !== undefined) {
        ready.text += frame;
        continue;
      }
      const step = this.stream.push(event);
      ready.add(step.chunks);
      if (step.outcome !== 'open') {
        this.conclude(ready, step.outcome);
        return;
      }
    }
    if (events.length > 0) {
      this.lastEventMs = this.options.clock.now();
      this.hasEvents ||= !ready.isEmpty;
    }
    if (isLast) {
      const step = this.stream.end();
      ready.add(step.chunks);
      this.conclude(ready, step.outcome === 'open' ? brokenAnswerFault : step.outcome);
    } else if (!ready.isEmpty && !this.handOn(ready)) {
      this.isPaused = true;
      this.call.pause();
    }
  }

  /** What nearly every read brings: one event with one more piece of text. False for any other. */
  private handOnAlone(event: string): boolean {
    const { asText, sink, clock } = this.options;
    const frame = asText ? this.stream.frameOf(event) : undefined;
    if (frame === undefined) return false;
    this.lastEventMs = clock.now();
    this.hasEvents = true;
    if (!sink.onText(frame)) {
      this.isPaused = true;
      this.call.pause();
    }
    return true;
  }

  private handOn(ready: Ready): boolean {
    const { sink } = this.options;
    return ready.asText ? sink.onText(ready.text) : sink.onChunks(ready.chunks);
  }

  private conclude(ready: Ready, outcome: 'completed' | EngineFault): void {
    if (outcome === 'completed') {
      this.finish({ kind: 'completed', usage: this.stream.usage(), finishReason: this.stream.finishReason() ?? 'stop', tail: ready.chunks, tailText: ready.text, answer: undefined });
      return;
    }
    if (!ready.isEmpty) this.handOn(ready);
    this.fail(outcome);
  }

  private fail(fault: EngineFault): void {
    this.finish({ kind: 'failed', fault });
  }

  private finish(outcome: AttemptOutcome): void {
    if (this.isSettled) return;
    this.isSettled = true;
    // A completed answer ends by itself, and its connection can be used again.
    if (outcome.kind !== 'completed') this.call.abort();
    else this.call.resume();
    this.settle(outcome);
  }
}

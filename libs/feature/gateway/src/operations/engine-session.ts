import type { Lease } from '@penstock/contract-commands';
import type { AnswerLimits } from '@penstock/domain-catalog';
import { brokenAnswerFault, dialectOf, failedFault, readReply, SseDecoder, type EngineDialect, type EngineFault, type RunningUsage } from '@penstock/domain-serving';
import type { Clock } from '@penstock/kernel';
import { EngineCall, engineHeaders, isStaleConnection, type EngineListener, type RequestOrigin } from '../chat/engine-call.js';
import type { ReplicaClients } from '../chat/replica-clients.js';
import { totalTimeoutFault } from '../frame/exchange-end.js';

/** An error body of an engine is read up to here. In characters. */
const ERROR_BODY_MAX = 64 * 1_024;
/** A whole answer larger than this is refused: 2,048 vectors of 4,096 numbers fit. In characters. */
const ANSWER_MAX = 128 * 1_024 * 1_024;

export type WholeReply = { readonly kind: 'reply'; readonly status: number; readonly text: string } | { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'aborted' };
export type StreamEnd = { readonly kind: 'completed'; readonly tail: string } | { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'aborted' };

/** What one event of an engine's stream leads to. */
export interface ReaderStep {
  readonly frames: string;
  readonly outcome: 'open' | 'completed' | EngineFault;
}

/** Reads the events of an engine's stream. */
export interface StreamReader {
  push(data: string): ReaderStep;
  end(): ReaderStep;
  usage(): RunningUsage;
}

/** What takes the answers of a session. */
export interface SessionSink {
  /** Takes frames for the client and returns whether more may come. Not called with nothing. */
  onFrames(frames: string, usage: RunningUsage): boolean;
  /** A whole answer came, of whatever kind. */
  onReply(): void;
  /** A stream goes on: called for each piece of it that completes an event and holds no fault. */
  onBegun(): void;
}

export interface SessionOptions {
  readonly lease: Lease;
  /** The name to put into the engine's requests. */
  readonly servedModel: string;
  readonly origin: RequestOrigin;
  readonly cacheSalt: string;
  readonly clock: Clock;
  readonly limits: AnswerLimits;
  readonly clients: ReplicaClients;
  readonly sink: SessionSink;
}

/** The calls of one request to one replica, one after the other, each with its time limits. */
export class EngineSession {
  readonly dialect: EngineDialect;
  private call = new EngineCall();
  private readonly startedAtMs: number;
  private lastEventMs: number;
  private limitMs: number | undefined;
  private timedOut: EngineFault | undefined;
  private isPaused = false;
  private isAborted = false;

  constructor(private readonly options: SessionOptions) {
    this.dialect = dialectOf(options.lease.engine);
    this.startedAtMs = options.clock.now();
    this.lastEventMs = this.startedAtMs;
  }

  get servedModel(): string {
    return this.options.servedModel;
  }

  get cacheSalt(): string {
    return this.options.cacheSalt;
  }

  /** Sends a request and reads the answer to its end. */
  async whole(path: string, body: string): Promise<WholeReply> {
    let [status, text, isTooLarge] = [0, '', false];
    this.limitMs = this.options.limits.totalMs;
    const end = await this.send(path, body, 'application/json', {
      onStatus: (given) => {
        status = given;
      },
      onText: (piece) => {
        text += piece;
        isTooLarge = text.length > ANSWER_MAX;
        if (isTooLarge || (status >= 400 && text.length > ERROR_BODY_MAX)) this.call.abort();
      },
    });
    if (this.timedOut !== undefined) return { kind: 'failed', fault: this.timedOut };
    if (this.isAborted) return { kind: 'aborted' };
    if (isTooLarge) return { kind: 'failed', fault: brokenAnswerFault };
    if (end.kind === 'lost') return { kind: 'failed', fault: end.beforeAnswer ? failedFault : brokenAnswerFault };
    this.options.sink.onReply();
    return { kind: 'reply', status, text };
  }

  /** Sends a request and hands what the reader makes of its stream to the client; the last frames are the caller's to send. */
  async stream(path: string, body: string, reader: StreamReader): Promise<StreamEnd> {
    const pump = new StreamPump(reader, (frames) => this.deliver(frames, reader.usage()), () => this.call.abort());
    let [status, errorText] = [0, ''];
    this.limitMs = this.options.limits.firstTokenMs;
    const end = await this.send(path, body, 'text/event-stream', {
      onStatus: (given) => {
        status = given;
      },
      onText: (piece) => {
        if (status >= 400) {
          errorText += piece;
          if (errorText.length > ERROR_BODY_MAX) this.call.abort();
          return;
        }
        if (!pump.push(piece)) return;
        this.lastEventMs = this.options.clock.now();
        this.limitMs = this.options.limits.chunkGapMs;
        if (pump.outcome === undefined || pump.outcome === 'completed') this.options.sink.onBegun();
      },
    });
    if (pump.outcome === undefined) {
      if (this.timedOut !== undefined) return { kind: 'failed', fault: this.timedOut };
      if (this.isAborted) return { kind: 'aborted' };
    }
    if (status >= 400) return { kind: 'failed', fault: faultOfReply(status, errorText, this.dialect) };
    if (pump.outcome === undefined && end.kind === 'lost') return { kind: 'failed', fault: end.beforeAnswer ? failedFault : brokenAnswerFault };
    return pump.finish();
  }

  /** Hands frames to the client in between; for what comes before or between streams. */
  deliver(frames: string, usage: RunningUsage): void {
    if (frames === '' || this.options.sink.onFrames(frames, usage)) return;
    this.isPaused = true;
    this.call.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.lastEventMs = this.options.clock.now();
    this.call.resume();
  }

  abort(): void {
    this.isAborted = true;
    this.call.abort();
  }

  /** Fails the call that runs when the engine let its time limit pass. */
  tick(nowMs: number): void {
    if (this.limitMs === undefined || this.timedOut !== undefined) return;
    const { totalMs } = this.options.limits;
    const isSilent = !this.isPaused && nowMs - this.lastEventMs >= this.limitMs;
    if (!isSilent && nowMs - this.startedAtMs < totalMs) return;
    this.timedOut = !isSilent ? totalTimeoutFault(totalMs) : { code: 'engine_timeout', message: 'The model did not answer in time. Try again.', param: null, retryElsewhere: true };
    this.call.abort();
  }

  private async send(path: string, body: string, accept: string, listener: EngineListener) {
    const { origin, clients, clock, lease: { url } } = this.options;
    const request = { path, body, headers: engineHeaders(origin, accept) };
    this.lastEventMs = clock.now();
    this.call = new EngineCall();
    if (this.isAborted) this.call.abort();
    if (this.isPaused) this.call.pause();
    let end = await this.call.send(clients.get(url), request, listener);
    if (isStaleConnection(end) && !this.isAborted) {
      this.call = new EngineCall();
      end = await this.call.send(clients.fresh(url), request, listener);
    }
    this.limitMs = undefined;
    return end;
  }
}

/** Splits a stream into events and keeps what they led to. */
class StreamPump {
  private readonly decoder = new SseDecoder();
  private held = '';
  outcome: 'completed' | EngineFault | undefined;

  constructor(private readonly reader: StreamReader, private readonly deliver: (frames: string) => void, private readonly stop: (reason: string) => void) {}

  /** True when the text completed an event. */
  push(text: string): boolean {
    if (this.outcome !== undefined) return false;
    return this.read(() => this.decoder.push(text));
  }

  /** The stream is over. */
  finish(): StreamEnd {
    if (this.outcome === undefined) this.read(() => this.decoder.end());
    if (this.outcome === undefined) this.take(this.reader.end());
    return this.outcome === 'completed' ? { kind: 'completed', tail: this.held } : { kind: 'failed', fault: this.outcome ?? brokenAnswerFault };
  }

  private read(events: () => readonly string[]): boolean {
    let data: readonly string[];
    try {
      data = events();
    } catch {
      this.outcome = brokenAnswerFault;
      this.stop('the stream cannot be read');
      return false;
    }
    for (const event of data) if (this.outcome === undefined) this.take(this.reader.push(event));
    // The last frames wait until the record of usage is safe.
    if (this.outcome !== 'completed') this.flush();
    return data.length > 0;
  }

  private take(step: ReaderStep): void {
    this.held += step.frames;
    if (step.outcome === 'open') return;
    this.outcome = step.outcome;
    if (step.outcome !== 'completed') {
      this.flush();
      this.stop('failed');
    }
  }

  private flush(): void {
    const frames = this.held;
    this.held = '';
    this.deliver(frames);
  }
}

/** The fault in an error answer, whatever its body is. */
function faultOfReply(status: number, text: string, dialect: EngineDialect): EngineFault {
  const reply = readReply(status, text, dialect);
  return reply.kind === 'fault' ? reply.fault : failedFault;
}

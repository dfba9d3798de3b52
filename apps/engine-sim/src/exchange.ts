import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Fault } from './fault.js';
import type { SimOptions } from './options.js';
import { runSequence, runTimedSequence, type Piece } from './sequence.js';
import { engineDiedBody } from './sim-error.js';
import type { SimMetrics } from './sim-metrics.js';
import type { SimRequest } from './sim-request.js';
import type { Slots } from './slots.js';
import type { TimedEngine } from './timed-engine.js';
import type { LedgerFinish, TruthLedger } from './truth-ledger.js';
import { detailsOf, pieceChunk, roleChunk, usageChunk, usageOf, wholeAnswer, type Answer, type AnswerHead, type SimUsage } from './wire.js';

export interface Engine {
  readonly options: SimOptions;
  readonly slots: Slots;
  readonly metrics: SimMetrics;
  readonly ledger: TruthLedger;
  /** Without it, answers come at `tokens-per-second`. */
  readonly timed: TimedEngine | undefined;
}

const WRONG_USAGE_FACTOR = 10;

/** One generation, from the accepted request to the last byte or the end of the connection. */
export class Exchange {
  private readonly abort = new AbortController();
  private readonly startedAt = new Date().toISOString();
  private readonly startedMs = performance.now();
  private readonly produced: number[];
  private readonly answers: Answer[] = [];
  private deliveredTokens = 0;
  private firstTokenMs: number | undefined;
  private cachedTokens: number | undefined;
  private hung = false;
  private failed = false;
  private ended = false;
  private readonly settled = Promise.withResolvers<void>();

  constructor(
    private readonly engine: Engine, private readonly request: SimRequest, private readonly head: AnswerHead,
    private readonly requestId: string, private readonly fault: Fault | undefined, private readonly response: ServerResponse,
  ) {
    this.produced = Array.from({ length: request.choices }, () => 0);
  }

  get adapter(): string | undefined {
    return this.request.adapter;
  }

  /** Resolves once the end line is written. */
  get finished(): Promise<void> {
    return this.settled.promise;
  }

  async run(incoming: IncomingMessage): Promise<void> {
    const { ledger, metrics } = this.engine;
    ledger.write({ event: 'start', requestId: this.requestId, promptTokens: this.request.promptTokens, startedAt: this.startedAt });
    metrics.promptTokens.inc(this.request.promptTokens);
    metrics.cachedTokens += this.request.promptTokens;
    this.response.once('close', () => {
      this.abort.abort();
      if (!this.response.writableFinished) this.finish('abort');
    });
    // The client may have left while the body was read.
    if (incoming.destroyed && this.response.destroyed) this.abort.abort();
    if (this.request.stream) this.response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
    await Promise.all(this.produced.map((_, choice) => this.runChoice(choice)));
    if (this.abort.signal.aborted || this.failed) return;
    if (this.hung) return;
    this.complete();
  }

  /** The engine goes down under this request: an error event and `[DONE]` on a stream, status 500 else. */
  fail(): void {
    if (this.ended || this.failed) return;
    this.failed = true;
    this.abort.abort();
    if (this.request.stream) this.response.end(`data: ${JSON.stringify(engineDiedBody)}\n\ndata: [DONE]\n\n`, () => this.finish('error'));
    else this.response.writeHead(500, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(engineDiedBody), () => this.finish('error'));
  }

  private async runChoice(choice: number): Promise<void> {
    const { options, slots, timed } = this.engine;
    const { signal } = this.abort;
    const pieces = timed === undefined ? runSequence(this.request, choice, options, slots, signal) : runTimedSequence(this.request, choice, timed, signal);
    let text = '';
    const tokens: string[] = [];
    for await (const piece of pieces) {
      // A failure or a client that left may have ended the answer while this piece was made.
      if (this.abort.signal.aborted) return;
      const isFirst = tokens.length === 0;
      text += piece.text;
      tokens.push(...piece.tokens);
      this.countPiece(piece);
      if (await this.misbehave()) return;
      if (this.request.stream) this.writePiece(piece, isFirst);
      if (piece.finish !== null) this.answers.push({ choice, text, tokens, finish: piece.finish, stopReason: piece.stopReason });
    }
  }

  private countPiece(piece: Piece): void {
    this.produced[piece.choice] = piece.producedTokens;
    if (piece.choice === 0) this.cachedTokens = piece.cachedTokens;
    this.engine.metrics.generationTokens.inc(piece.tokens.length);
    this.engine.metrics.cachedTokens += piece.tokens.length;
    const elapsedMs = performance.now() - this.startedMs;
    if (this.firstTokenMs !== undefined) return;
    this.firstTokenMs = elapsedMs;
    this.engine.metrics.ttftSeconds.observe(elapsedMs / 1_000);
  }

  /** Carries out the fault once its moment has come. True when this choice goes no further. */
  private async misbehave(): Promise<boolean> {
    const { fault } = this;
    if (fault === undefined || !('after' in fault) || this.producedTokens() < fault.after) return false;
    switch (fault.kind) {
      case 'die':
        process.kill(process.pid, 'SIGKILL');
        return true;
      case 'hang':
        this.hung = true;
        await new Promise<void>((resolve) => this.abort.signal.addEventListener('abort', () => resolve(), { once: true }));
        return true;
      case 'error':
        this.fail();
        return true;
      case 'cut':
        this.response.destroy();
        return true;
      case 'garbage':
        if (this.request.stream) this.response.write('data: {"id":"chatcmpl-garbage","choices":[{"ind\n\n');
        return false;
    }
  }

  private writePiece(piece: Piece, isFirst: boolean): void {
    const usage = this.request.continuousUsage ? this.usage(piece.producedTokens) : undefined;
    let text = '';
    if (isFirst && this.request.endpoint === 'chat') {
      text += eventOf(roleChunk(this.head, piece.choice, this.request.continuousUsage ? this.usage(0) : undefined));
    }
    text += eventOf(pieceChunk(this.head, this.request, piece, usage));
    const count = piece.tokens.length;
    this.response.write(text, (error) => {
      if (error === null || error === undefined) this.deliveredTokens += count;
    });
  }

  private complete(): void {
    this.answers.sort((a, b) => a.choice - b.choice);
    const usage = this.usage(this.producedTokens());
    const reason: LedgerFinish = this.answers.every((answer) => answer.finish === 'stop') ? 'stop' : 'length';
    const onFlushed = (): void => {
      if (!this.request.stream) this.deliveredTokens = this.producedTokens();
      this.finish(reason);
    };
    if (this.request.stream) {
      const tail = this.request.includeUsage ? eventOf(usageChunk(this.head, this.request, usage)) : '';
      this.response.end(`${tail}data: [DONE]\n\n`, onFlushed);
      return;
    }
    const body = this.fault?.kind === 'garbage' ? '{"id":"chatcmpl-garbage","choices":[{"ind' : JSON.stringify(wholeAnswer(this.head, this.request, this.answers, usage));
    this.response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body, onFlushed);
  }

  /** Writes the end line, once. */
  private finish(finished: LedgerFinish): void {
    if (this.ended) return;
    this.ended = true;
    const { ledger, metrics } = this.engine;
    const producedTokens = this.producedTokens();
    metrics.cachedTokens -= this.request.promptTokens + producedTokens;
    // vLLM does not count aborted requests here (its counter stays 0), so neither does this.
    if (finished !== 'abort') metrics.requestSuccess.inc({ finished_reason: finished });
    const elapsedMs = performance.now() - this.startedMs;
    metrics.e2eSeconds.observe(elapsedMs / 1_000);
    if (producedTokens > 1) metrics.itlSeconds.observe((elapsedMs - (this.firstTokenMs ?? 0)) / 1_000 / (producedTokens - 1));
    ledger.write({
      event: 'end', requestId: this.requestId, promptTokens: this.request.promptTokens, producedTokens,
      deliveredTokens: this.deliveredTokens, finished, startedAt: this.startedAt, endedAt: new Date().toISOString(),
    });
    this.settled.resolve();
  }

  private producedTokens(): number {
    return this.produced.reduce((sum, tokens) => sum + tokens, 0);
  }

  private usage(completionTokens: number): SimUsage {
    const factor = this.fault?.kind === 'wrong-usage' ? WRONG_USAGE_FACTOR : 1;
    const details = this.cachedTokens === undefined ? null : detailsOf(this.request, this.cachedTokens);
    return usageOf(this.request.promptTokens, completionTokens * factor, details);
  }
}

function eventOf(body: unknown): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}

import type { Lease } from '@penstock/contract-commands';
import type { ApiFault, ChatCompletionRequest } from '@penstock/contract-http';
import { ChatJoiner, dialectOf, estimatePromptTokens, toEngineRequest, type AnswerIdentity, type ChatChunk } from '@penstock/domain-serving';
import { ANSWER_TOKENS_ASSUMED, limitsOf, servedModelOf } from '../frame/exchange-end.js';
import { ModelExchange } from '../frame/model-exchange.js';
import type { UsageLedger } from '../frame/model-work.js';
import type { ChatJob, ChatParts } from './chat-parts.js';
import type { ClientAnswer } from './client-answer.js';
import { EngineAttempt, type AttemptOutcome, type AttemptSink } from './engine-attempt.js';

/** How often the progress of a stream is noted; a killed gateway forgets at most so much of it. */
const PROGRESS_INTERVAL_MS = 100;
type CompletedAttempt = Extract<AttemptOutcome, { kind: 'completed' }>;

/** One chat request from its admission to its record of usage. */
export class ChatExchange extends ModelExchange<ChatJob, CompletedAttempt, EngineAttempt> implements AttemptSink {
  protected readonly name = 'chat';
  private readonly identity: AnswerIdentity;
  private readonly joiner: ChatJoiner | undefined;
  private progressNotedMs = 0;
  private hasDelivered = false;

  constructor(parts: ChatParts, job: ChatJob, ledger: UsageLedger, answer: ClientAnswer) {
    super(parts, job, ledger, answer);
    this.identity = { id: `chatcmpl-${job.requestId.replace(/^req_/, '')}`, created: Math.floor(job.startedAtMs / 1_000), model: job.endpoint.name };
    this.joiner = job.isStreamed ? undefined : new ChatJoiner();
  }

  get hasBegun(): boolean {
    return this.firstTokenAtMs !== undefined;
  }

  get promptTokensEstimate(): number {
    return estimatePromptTokens(this.job.document.text.length);
  }

  /** Over all choices. */
  get answerTokensMax(): number {
    const { request, endpoint } = this.job;
    return Math.min(request.max_completion_tokens ?? request.max_tokens ?? ANSWER_TOKENS_ASSUMED, endpoint.serving.contextTokens) * (request.n ?? 1);
  }

  protected asksForStream({ engine }: Lease): boolean {
    return this.job.isStreamed || !dialectOf(engine).reportsUsageUnstreamed(this.job.request.n ?? 1);
  }

  protected makeAttempt(lease: Lease, takesLead: (() => boolean) | undefined): EngineAttempt {
    const { parts, job } = this;
    const stream = this.asksForStream(lease);
    return new EngineAttempt({
      lease,
      body: toEngineRequest(job.document, job.request, { servedModel: servedModelOf(lease, job.endpoint), dialect: dialectOf(lease.engine), stream, cacheSalt: job.cacheSalt }),
      origin: job,
      clients: parts.clients,
      identity: this.identity,
      stream,
      tokensMax: tokensAllowed(job.request, job.endpoint.serving.contextTokens),
      includeUsage: job.isStreamed && job.request.stream_options?.include_usage === true,
      clock: parts.clock,
      limits: limitsOf(parts.config, job.endpoint),
      asText: this.joiner === undefined,
      sink: takesLead === undefined ? this : {
        onChunks: (chunks) => !takesLead() || this.onChunks(chunks),
        onText: (text) => !takesLead() || this.onText(text),
      },
    });
  }

  protected runAttempt(attempt: EngineAttempt): Promise<AttemptOutcome> {
    return attempt.run();
  }

  onChunks(chunks: readonly ChatChunk[]): boolean {
    this.noteFirstToken();
    for (const chunk of chunks) this.joiner?.add(chunk);
    return true;
  }

  /** Hands events on; what reached the client's socket is what the client pays for. */
  onText(text: string): boolean {
    this.noteFirstToken();
    if (this.isGone) return true;
    const canTakeMore = this.answer.write(text, this.onDrain);
    this.hasDelivered = true;
    const nowMs = this.parts.clock.now();
    this.lastTextMs = nowMs;
    if (nowMs - this.progressNotedMs < PROGRESS_INTERVAL_MS) return canTakeMore;
    this.progressNotedMs = nowMs;
    this.noteDelivered();
    this.ledger?.usage.progress(this.progress(this.delivered));
    return canTakeMore;
  }

  /** Everything that an attempt handed on before now was delivered. */
  protected override noteDelivered(): void {
    if (this.attempt === undefined || !this.hasDelivered) return;
    this.delivered = this.attempt.usage();
  }

  protected finish(outcome: CompletedAttempt): void {
    if (this.joiner === undefined) {
      this.answer.endStream(outcome.tailText);
      return;
    }
    for (const chunk of outcome.tail) this.joiner.add(chunk);
    this.answer.sendJson(JSON.stringify(outcome.answer ?? this.joiner.answer(this.identity, outcome.usage)));
  }

  protected failStream(fault: ApiFault): void {
    this.answer.failStream(fault);
  }
}

/** What the engine may produce at most, over all choices. */
function tokensAllowed(request: ChatCompletionRequest, contextTokens: number): number {
  return (request.max_completion_tokens ?? request.max_tokens ?? contextTokens) * (request.n ?? 1);
}

import type { ApiFault, CompletionRequest } from '@penstock/contract-http';
import {
  completionAnswer, COMPLETION_TOKENS_DEFAULT, CompletionJoiner, CompletionStream, completionUsageChunk, echoOf, estimatePromptTokens, noUsage, promptsOf, readCompletion, sseFrame, SSE_DONE, sumUsage, toEngineCompletion, withContextParam, writesNothing,
  type AnswerIdentity, type CompletionPrompt, type CompletionStreamOptions, type EngineDialect, type EngineFault, type FinishedChoice, type JsonDocument, type RunningUsage,
} from '@penstock/domain-serving';
import type { EngineSession, StreamReader } from './engine-session.js';
import type { OperationContext } from './operation-desk.js';
import type { Operation, OperationOutcome } from './operation.js';
import { openAiFailureFrames } from './stream-failure.js';

const PATH = '/v1/completions';

/** What the prompts that are done have led to. */
interface Progress {
  readonly usage: RunningUsage;
  readonly choices: readonly FinishedChoice[];
  readonly finishReason: string | null;
}

type PromptOutcome = { readonly kind: 'done'; readonly progress: Progress } | Exclude<OperationOutcome, { kind: 'completed' }>;

/** `POST /v1/completions`: each prompt is a call of its own to the engine, one after the other in the same slot. */
export class CompletionOperation implements Operation {
  readonly metered = 'completions';
  readonly isStreamed: boolean;
  readonly terminator = SSE_DONE;
  readonly promptTokensEstimate: number;
  readonly asked: Operation['asked'];
  readonly prompted: Operation['prompted'];
  private readonly identity: AnswerIdentity;

  constructor(private readonly document: JsonDocument, private readonly request: CompletionRequest, { endpoint, requestId, created }: OperationContext) {
    this.isStreamed = request.stream === true;
    this.promptTokensEstimate = estimatePromptTokens(document.text.length);
    this.prompted = { document, member: 'prompt' };
    const choices = promptsOf(request).length * (request.n ?? 1);
    this.asked = { completionTokensMax: (request.max_tokens ?? COMPLETION_TOKENS_DEFAULT) * choices, choices };
    this.identity = { id: `cmpl-${requestId.replace(/^req_/, '')}`, created, model: endpoint.name };
  }

  asksForStream(dialect: EngineDialect): boolean {
    return this.isStreamed || !dialect.reportsUsageUnstreamed(this.request.n ?? 1);
  }

  failureFrames(fault: ApiFault): string {
    return openAiFailureFrames(fault);
  }

  async perform(session: EngineSession): Promise<OperationOutcome> {
    let progress: Progress = { usage: noUsage, choices: [], finishReason: null };
    const prompts = promptsOf(this.request);
    for (const [position, prompt] of prompts.entries()) {
      const outcome = await this.complete(session, prompt, position, progress);
      if (outcome.kind === 'failed') return { kind: 'failed', fault: withContextParam(outcome.fault, 'prompt') };
      if (outcome.kind === 'aborted') return outcome;
      ({ progress } = outcome);
    }
    const { usage, finishReason, choices } = progress;
    if (!this.isStreamed) return { kind: 'completed', usage, finishReason, answer: JSON.stringify(completionAnswer(this.identity, choices, usage)) };
    return { kind: 'completed', usage, finishReason, answer: this.includesUsage ? sseFrame(completionUsageChunk(this.identity, usage)) : '' };
  }

  private get includesUsage(): boolean {
    return this.isStreamed && this.request.stream_options?.include_usage === true;
  }

  private async complete(session: EngineSession, prompt: CompletionPrompt, position: number, before: Progress): Promise<PromptOutcome> {
    const { dialect, servedModel, cacheSalt } = session;
    const echo = echoOf(this.request, prompt, dialect);
    if ('code' in echo) return { kind: 'failed', fault: refusal(echo) };
    const choices = this.request.n ?? 1;
    const stream = this.asksForStream(dialect);
    const options: CompletionStreamOptions = { dialect, includeUsage: this.includesUsage, firstIndex: position * choices, choices, prefix: echo.prefix, isSilent: writesNothing(this.request, dialect) };
    const body = toEngineCompletion(this.document, this.request, { servedModel, dialect, stream, cacheSalt, prompt });
    return stream ? this.stream(session, body, options, before) : this.whole(session, body, options, before);
  }

  private async whole(session: EngineSession, body: string, options: CompletionStreamOptions, before: Progress): Promise<PromptOutcome> {
    const reply = await session.whole(PATH, body);
    if (reply.kind !== 'reply') return reply;
    const read = readCompletion(reply.status, reply.text, options);
    if (read.kind === 'fault') return { kind: 'failed', fault: read.fault };
    return { kind: 'done', progress: add(before, read.usage, read.choices, read.choices[0]?.finish_reason ?? null) };
  }

  private async stream(session: EngineSession, body: string, options: CompletionStreamOptions, before: Progress): Promise<PromptOutcome> {
    const stream = new CompletionStream(this.identity, options);
    const joiner = this.isStreamed ? undefined : new CompletionJoiner();
    const usage = (): RunningUsage => add(before, stream.usage(), [], null).usage;
    const read = ({ chunks, outcome }: ReturnType<CompletionStream['push']>) => {
      if (joiner === undefined) return { frames: chunks.map(sseFrame).join(''), outcome };
      for (const chunk of chunks) joiner.add(chunk);
      return { frames: '', outcome };
    };
    const reader: StreamReader = { push: (data) => read(stream.push(data)), end: () => read(stream.end()), usage };
    const end = await session.stream(PATH, body, reader);
    if (end.kind !== 'completed') return end;
    session.deliver(end.tail, usage());
    return { kind: 'done', progress: add(before, stream.usage(), joiner?.finished() ?? [], stream.finishReason()) };
  }
}

function add(before: Progress, usage: RunningUsage, choices: readonly FinishedChoice[], finishReason: string | null): Progress {
  const isFirst = before.usage === noUsage;
  return { usage: isFirst ? usage : sumUsage(before.usage, usage), choices: [...before.choices, ...choices], finishReason: before.finishReason ?? finishReason };
}

function refusal({ code, message, param }: ApiFault): EngineFault {
  return { code: code as EngineFault['code'], message, param: param ?? null, retryElsewhere: false };
}

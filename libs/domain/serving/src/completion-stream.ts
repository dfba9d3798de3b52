import type { CompletionLogprobs } from '@penstock/contract-http';
import type { AnswerIdentity } from './chat-stream.js';
import { toChatUsage, type ChatUsage } from './chat-usage.js';
import { toCompletionLogprobs } from './completion-logprobs.js';
import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault, failedFault } from './engine-fault.js';
import { EngineStream, type EngineStreamStep, type StreamedChoice } from './engine-stream.js';
import { noteFinish, type RunningUsage } from './engine-usage.js';
import { isRecord } from './json-fields.js';
import { readFinishReason } from './finish-reason.js';

export type CompletionFinish = 'stop' | 'length' | 'content_filter';

export interface CompletionChoice {
  readonly text: string;
  readonly index: number;
  readonly logprobs: CompletionLogprobs | null;
  readonly finish_reason: CompletionFinish | null;
}

export interface CompletionChunk extends AnswerIdentity {
  readonly object: 'text_completion';
  readonly choices: readonly CompletionChoice[];
  readonly usage?: ChatUsage | null;
}

export type CompletionStep = EngineStreamStep<CompletionChunk>;

export interface CompletionStreamOptions {
  readonly dialect: EngineDialect;
  /** Whether earlier chunks carry `"usage":null`. */
  readonly includeUsage: boolean;
  /** Index of the first choice of this prompt. */
  readonly firstIndex: number;
  /** Choices of this prompt. */
  readonly choices: number;
  /** Put before the text of each choice. */
  readonly prefix: string;
  /** What the engine writes is not shown, since nothing was asked for. */
  readonly isSilent?: boolean;
}

interface ChoiceState extends StreamedChoice<CompletionFinish> {
  length: number;
}

/** Turns what any engine streams for one prompt into OpenAI's chunks of a completion. The usage chunk is the caller's: it covers all prompts. */
export class CompletionStream extends EngineStream<CompletionChunk, CompletionFinish, ChoiceState> {
  constructor(private readonly identity: AnswerIdentity, private readonly options: CompletionStreamOptions) {
    super(options.dialect);
  }

  protected override get choicesMin(): number {
    return this.options.choices;
  }

  protected override takeChoice(choice: unknown, chunks: CompletionChunk[]): EngineFault | undefined {
    if (!isRecord(choice)) return brokenAnswerFault;
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    if (!Number.isInteger(index) || index < 0 || index >= this.options.choices) return brokenAnswerFault;
    const finish = readCompletionFinish(choice['finish_reason']);
    if (finish === 'broken') return failedFault;
    const known = this.choices.get(index);
    const state = known ?? { length: this.options.prefix.length, finish: null };
    if (known === undefined) this.choices.set(index, state);
    if (state.finish !== null) return undefined;
    const { isSilent = false } = this.options;
    const text = typeof choice['text'] === 'string' && !isSilent ? choice['text'] : '';
    const logprobs = isSilent ? null : toCompletionLogprobs(choice['logprobs'], state.length);
    state.length += text.length;
    state.finish = finish !== null && isSilent ? 'length' : finish;
    if (text !== '') this.pieces += 1;
    if (finish !== null) this.running = noteFinish(this.running, index);
    if (text === '' && logprobs === null && finish === null && known !== undefined) return undefined;
    const whole = known === undefined ? this.options.prefix + text : text;
    chunks.push(completionChunk(this.identity, { text: whole, index: this.options.firstIndex + index, logprobs, finish_reason: state.finish }, this.options.includeUsage));
    return undefined;
  }
}

/** The last chunk of a stream whose client asked for usage. */
export function completionUsageChunk(identity: AnswerIdentity, usage: RunningUsage): CompletionChunk {
  return { ...headOf(identity), choices: [], usage: toChatUsage(usage) };
}

/** A completion ends by `stop`, `length` or `content_filter`; an engine that calls tools in one has stopped. */
export function readCompletionFinish(value: unknown): CompletionFinish | null | 'broken' {
  const finish = readFinishReason(value);
  if (finish.kind !== 'ended') return finish.kind === 'open' ? null : 'broken';
  return finish.reason === 'length' || finish.reason === 'content_filter' ? finish.reason : 'stop';
}

function completionChunk(identity: AnswerIdentity, choice: CompletionChoice, includeUsage: boolean): CompletionChunk {
  return { ...headOf(identity), choices: [choice], ...(includeUsage ? { usage: null } : {}) };
}

function headOf({ id, created, model }: AnswerIdentity): AnswerIdentity & { readonly object: 'text_completion' } {
  return { id, object: 'text_completion', created, model };
}

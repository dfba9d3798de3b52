import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault, failedFault, overrunFault } from './engine-fault.js';
import { EngineStream, type EngineStreamStep, type StreamedChoice } from './engine-stream.js';
import { addUsage, noteFinish, noUsage, type RunningUsage } from './engine-usage.js';
import { isRecord } from './json-fields.js';
import { ContentTemplate } from './content-template.js';
import { DeltaCleaner, type CleanDelta } from './chat-delta.js';
import { readChatLogprobs, type ChatLogprobs } from './chat-logprobs.js';
import { toChatUsage, type ChatUsage } from './chat-usage.js';
import { sseFrame } from './sse-frame.js';
import { readFinishReason, type FinishReason } from './finish-reason.js';

/** What every chunk of one answer repeats. */
export interface AnswerIdentity {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The public model name. */
  readonly model: string;
}

export interface ChatChunk extends AnswerIdentity {
  readonly object: 'chat.completion.chunk';
  readonly choices: readonly { readonly index: number; readonly delta: CleanDelta; readonly logprobs?: ChatLogprobs | null; readonly finish_reason: FinishReason | null }[];
  readonly usage?: ChatUsage | null;
}

export type ChatStreamStep = EngineStreamStep<ChatChunk>;

/** Some engines split a token of a tool call into several pieces, so this many more pieces than tokens are let through. */
export const OVERRUN_PIECES = 16;

interface ChoiceState extends StreamedChoice<FinishReason> {
  readonly cleaner: DeltaCleaner;
}

/** A choice index beyond this is not one that was asked for. */
const CHOICE_INDEX_MAX = 128;

/**
 * Turns the chunks of any engine into OpenAI's: one identity on all of them, the role first and once, one choice per
 * chunk, the finish reason alone and last, usage only when asked for. A stream is complete only when every choice finished.
 */
export class ChatStream extends EngineStream<ChatChunk, FinishReason, ChoiceState> {
  protected readonly choicesMin = 1;
  private template: ContentTemplate | undefined;
  /** The last event that {@link frameOf} took: what it says of usage is read when somebody asks. */
  private unread: string | undefined;

  /** `tokensMax` is what the request allowed over all of its choices. */
  constructor(private readonly identity: AnswerIdentity, private readonly options: { readonly dialect: EngineDialect; readonly includeUsage: boolean; readonly tokensMax?: number | undefined }) {
    super(options.dialect);
  }

  /**
   * The event for the client, where `data` differs from the last event that was pushed in nothing but its text and numbers of its
   * end: then the answer is the same text in the same place, and nothing has to be parsed. Undefined for any other event: push it.
   */
  frameOf(data: string): string | undefined {
    const frame = this.outcome === 'open' && !this.isOverrun() ? this.template?.frameOf(data) : undefined;
    if (frame === undefined) return undefined;
    this.pieces += 1;
    this.unread = data;
    return frame;
  }

  override push(data: string): ChatStreamStep {
    this.readUnread();
    const step = super.push(data);
    this.template = this.templateOf(data, step);
    return step;
  }

  /** Counted from the pieces of content also when the engine claims more than the request allowed. */
  override usage(): RunningUsage {
    this.readUnread();
    if (!this.running.known) return { ...noUsage, completionTokens: this.pieces };
    const { tokensMax = Infinity } = this.options;
    return this.running.completionTokens <= tokensMax ? this.running : { ...this.running, completionTokens: Math.min(this.pieces, tokensMax), known: false };
  }

  protected override excess(): EngineFault | undefined {
    return this.isOverrun() ? overrunFault : undefined;
  }

  protected override lastChunks(): readonly ChatChunk[] {
    return this.options.includeUsage ? [{ ...this.head(), choices: [], usage: toChatUsage(this.usage()) }] : [];
  }

  private isOverrun(): boolean {
    return this.pieces > (this.options.tokensMax ?? Infinity) + OVERRUN_PIECES;
  }

  protected override takeChoice(choice: unknown, chunks: ChatChunk[]): EngineFault | undefined {
    if (!isRecord(choice)) return brokenAnswerFault;
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    if (!Number.isInteger(index) || index < 0 || index > CHOICE_INDEX_MAX) return brokenAnswerFault;
    const finish = readFinishReason(choice['finish_reason']);
    if (finish.kind === 'broken') return failedFault;
    const state = this.stateOf(index);
    const delta = state.cleaner.clean(choice['delta']);
    if (!this.choices.has(index)) {
      this.choices.set(index, state);
      chunks.push(this.chunk(index, { role: 'assistant', content: delta?.tool_calls === undefined ? '' : null, refusal: null }, null, null));
    }
    const logprobs = readChatLogprobs(choice['logprobs']);
    if (delta !== undefined || (logprobs !== null && (finish.kind === 'open' || hasEntries(logprobs)))) {
      this.pieces += 1;
      chunks.push(this.chunk(index, delta ?? { content: '' }, null, logprobs));
    }
    if (finish.kind === 'ended' && state.finish === null) {
      state.finish = finish.reason;
      this.running = noteFinish(this.running, index);
      chunks.push(this.chunk(index, {}, finish.reason, null));
    }
    return undefined;
  }

  private readUnread(): void {
    if (this.unread === undefined) return;
    const reading = this.dialect.readUsage(JSON.parse(this.unread));
    this.unread = undefined;
    if (reading !== undefined) this.running = addUsage(this.running, reading);
  }

  /** Only for an answer with one choice, since the usage of several adds up event by event. */
  private templateOf(data: string, step: ChatStreamStep): ContentTemplate | undefined {
    const [chunk, second] = step.chunks;
    if (step.outcome !== 'open' || second !== undefined || this.choices.size !== 1) return undefined;
    if (chunk === undefined) return step.chunks.length === 0 ? this.template : undefined;
    const [choice] = chunk.choices;
    const delta = choice?.delta;
    if (choice === undefined || choice.finish_reason !== null || (choice.logprobs ?? null) !== null || typeof delta?.content !== 'string' || Object.keys(delta).length !== 1) return undefined;
    return ContentTemplate.learn(data, delta.content, sseFrame(chunk));
  }

  private stateOf(index: number): ChoiceState {
    return this.choices.get(index) ?? { cleaner: new DeltaCleaner(`call_${this.identity.id.replace(/^chatcmpl-/, '')}_${index}_`), finish: null };
  }

  private chunk(index: number, delta: CleanDelta, finishReason: FinishReason | null, logprobs: ChatLogprobs | null): ChatChunk {
    const choice = { index, delta, logprobs, finish_reason: finishReason };
    return { ...this.head(), choices: [choice], ...(this.options.includeUsage ? { usage: null } : {}) };
  }

  private head(): AnswerIdentity & { readonly object: 'chat.completion.chunk' } {
    return { id: this.identity.id, object: 'chat.completion.chunk', created: this.identity.created, model: this.identity.model };
  }
}

/** Whether logprobs say something: an engine may tell those of a token without text with the finish reason. */
function hasEntries({ content, refusal }: ChatLogprobs): boolean {
  return (content?.length ?? 0) > 0 || (refusal?.length ?? 0) > 0;
}

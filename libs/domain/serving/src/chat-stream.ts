import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { failedFault } from './engine-fault.js';
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

/** What one engine event leads to. Nothing comes after `completed` or `failed`. */
export interface ChatStreamStep {
  readonly chunks: readonly ChatChunk[];
  readonly outcome: 'open' | 'completed' | EngineFault;
}

export const brokenAnswerFault: EngineFault = {
  code: 'engine_response_invalid', message: 'The model\'s answer broke off before it was complete. Try again.', param: null, retryElsewhere: true,
};

/** Another replica has the same engine, and the client has all that it asked for. */
export const overrunFault: EngineFault = {
  code: 'engine_response_invalid', message: 'The model went on beyond the limit of the request and was stopped.', param: null, retryElsewhere: false,
};

/** Some engines split a token of a tool call into several pieces, so this many more pieces than tokens are let through. */
export const OVERRUN_PIECES = 16;

interface ChoiceState {
  readonly cleaner: DeltaCleaner;
  finish: FinishReason | null;
}

/** A choice index beyond this is not one that was asked for. */
const CHOICE_INDEX_MAX = 128;

/**
 * Turns the chunks of any engine into OpenAI's: one identity on all of them, the role first and once, one choice per
 * chunk, the finish reason alone and last, usage only when asked for. A stream is complete only when every choice finished.
 */
export class ChatStream {
  private readonly choices = new Map<number, ChoiceState>();
  private running: RunningUsage = noUsage;
  private pieces = 0;
  private outcome: ChatStreamStep['outcome'] = 'open';
  private template: ContentTemplate | undefined;
  /** The last event that {@link frameOf} took: what it says of usage is read when somebody asks. */
  private unread: string | undefined;

  /** `tokensMax` is what the request allowed over all of its choices. */
  constructor(private readonly identity: AnswerIdentity, private readonly options: { readonly dialect: EngineDialect; readonly includeUsage: boolean; readonly tokensMax?: number | undefined }) {}

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

  /** Takes the data of one event of the engine's stream. */
  push(data: string): ChatStreamStep {
    this.readUnread();
    const step = this.take(data);
    this.template = this.templateOf(data, step);
    return step;
  }

  private take(data: string): ChatStreamStep {
    if (this.outcome !== 'open') return { chunks: [], outcome: this.outcome };
    if (data.trim() === '[DONE]') return this.end();
    let body: unknown;
    try {
      body = JSON.parse(data);
    } catch {
      return this.fail(brokenAnswerFault);
    }
    const fault = this.options.dialect.readFault(200, body);
    if (fault !== undefined) return this.fail(fault);
    const chunks: ChatChunk[] = [];
    const choices = isRecord(body) && Array.isArray(body['choices']) ? body['choices'] : [];
    for (const choice of choices) {
      const broken = this.takeChoice(choice, chunks);
      if (broken !== undefined) return this.fail(broken, chunks);
    }
    const reading = this.options.dialect.readUsage(body);
    if (reading !== undefined) this.running = addUsage(this.running, reading);
    if (this.isOverrun()) return this.fail(overrunFault, chunks);
    return { chunks, outcome: 'open' };
  }

  /** The engine's stream ended: by `[DONE]`, or because its connection did. */
  end(): ChatStreamStep {
    if (this.outcome !== 'open') return { chunks: [], outcome: this.outcome };
    const states = [...this.choices.values()];
    if (states.length === 0 || states.some((choice) => choice.finish === null)) return this.fail(brokenAnswerFault);
    this.outcome = 'completed';
    const usage: ChatChunk[] = this.options.includeUsage ? [{ ...this.head(), choices: [], usage: toChatUsage(this.usage()) }] : [];
    return { chunks: usage, outcome: 'completed' };
  }

  /**
   * Usage up to the last event that was pushed; counted from the pieces of content while the engine has said nothing, and when it
   * claims more than the request allowed.
   */
  usage(): RunningUsage {
    this.readUnread();
    if (!this.running.known) return { ...noUsage, completionTokens: this.pieces };
    const { tokensMax = Infinity } = this.options;
    return this.running.completionTokens <= tokensMax ? this.running : { ...this.running, completionTokens: Math.min(this.pieces, tokensMax), known: false };
  }

  private isOverrun(): boolean {
    return this.pieces > (this.options.tokensMax ?? Infinity) + OVERRUN_PIECES;
  }

  /** The finish reason of the first choice, once it has one. */
  finishReason(): FinishReason | null {
    return this.choices.get(0)?.finish ?? null;
  }

  private takeChoice(choice: unknown, chunks: ChatChunk[]): EngineFault | undefined {
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
    const reading = this.options.dialect.readUsage(JSON.parse(this.unread));
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

  private fail(fault: EngineFault, chunks: readonly ChatChunk[] = []): ChatStreamStep {
    this.outcome = fault;
    return { chunks, outcome: fault };
  }
}

/** Whether logprobs say something: an engine may tell those of a token without text with the finish reason. */
function hasEntries({ content, refusal }: ChatLogprobs): boolean {
  return (content?.length ?? 0) > 0 || (refusal?.length ?? 0) > 0;
}

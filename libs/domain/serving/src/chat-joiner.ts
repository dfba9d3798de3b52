import type { RunningUsage } from './engine-usage.js';
import type { AnswerMessage, AnswerToolCall, ChatAnswer } from './chat-answer.js';
import type { CleanDelta } from './chat-delta.js';
import type { ChatLogprobs } from './chat-logprobs.js';
import type { AnswerIdentity, ChatChunk } from './chat-stream.js';
import { toChatUsage } from './chat-usage.js';
import type { FinishReason } from './finish-reason.js';

interface JoinedChoice {
  content: string | null;
  refusal: string | null;
  reasoning: string;
  reasoningContent: string;
  readonly toolCalls: Map<number, { id: string; name: string; text: string }>;
  readonly logprobs: NonNullable<ChatLogprobs['content']>[number][];
  finish: FinishReason | null;
}

/** Joins the chunks of a stream into one whole answer, for a client that did not ask for a stream where the engine has to be asked for one. */
export class ChatJoiner {
  private readonly choices = new Map<number, JoinedChoice>();

  add(chunk: ChatChunk): void {
    for (const choice of chunk.choices) {
      const joined = this.choiceOf(choice.index);
      joinDelta(joined, choice.delta);
      joined.logprobs.push(...(choice.logprobs?.content ?? []));
      joined.finish = choice.finish_reason ?? joined.finish;
    }
  }

  /** The whole answer. Call it only after the stream completed. */
  answer(identity: AnswerIdentity, usage: RunningUsage): ChatAnswer {
    const choices = [...this.choices].sort(([left], [right]) => left - right).map(([index, joined]) => ({
      index,
      message: messageOf(joined),
      logprobs: joined.logprobs.length > 0 ? { content: joined.logprobs, refusal: null } : null,
      finish_reason: joined.finish ?? 'stop' as const,
    }));
    return { ...identity, object: 'chat.completion', choices, usage: toChatUsage(usage) };
  }

  private choiceOf(index: number): JoinedChoice {
    const known = this.choices.get(index);
    if (known !== undefined) return known;
    const fresh: JoinedChoice = { content: null, refusal: null, reasoning: '', reasoningContent: '', toolCalls: new Map(), logprobs: [], finish: null };
    this.choices.set(index, fresh);
    return fresh;
  }
}

function joinDelta(joined: JoinedChoice, delta: CleanDelta): void {
  if (typeof delta.content === 'string') joined.content = (joined.content ?? '') + delta.content;
  if (typeof delta.refusal === 'string') joined.refusal = (joined.refusal ?? '') + delta.refusal;
  joined.reasoning += delta.reasoning ?? '';
  joined.reasoningContent += delta.reasoning_content ?? '';
  for (const call of delta.tool_calls ?? []) {
    const known = joined.toolCalls.get(call.index);
    if (known === undefined) joined.toolCalls.set(call.index, { id: call.id ?? '', name: call.function.name ?? '', text: call.function.arguments ?? '' });
    else known.text += call.function.arguments ?? '';
  }
}

function messageOf(joined: JoinedChoice): AnswerMessage {
  const toolCalls = [...joined.toolCalls].sort(([left], [right]) => left - right).map(([, { id, name, text }]): AnswerToolCall => ({ id, type: 'function', function: { name, arguments: text } }));
  return {
    role: 'assistant',
    content: toolCalls.length > 0 && joined.content === '' ? null : joined.content,
    refusal: joined.refusal,
    ...(joined.reasoning === '' ? {} : { reasoning: joined.reasoning }),
    ...(joined.reasoningContent === '' ? {} : { reasoning_content: joined.reasoningContent }),
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
}

import type { AnswerIdentity } from './chat-stream.js';
import { toChatUsage, type ChatUsage } from './chat-usage.js';
import { joinCompletionLogprobs, toCompletionLogprobs } from './completion-logprobs.js';
import { readCompletionFinish, type CompletionChoice, type CompletionChunk, type CompletionFinish, type CompletionStreamOptions } from './completion-stream.js';
import type { EngineFault } from './engine-dialect.js';
import { brokenAnswerFault } from './engine-fault.js';
import { readReply } from './engine-reply.js';
import { addUsage, noUsage, type RunningUsage } from './engine-usage.js';
import { isRecord } from './json-fields.js';

export type FinishedChoice = CompletionChoice & { readonly finish_reason: CompletionFinish };

export interface CompletionAnswer extends AnswerIdentity {
  readonly object: 'text_completion';
  readonly choices: readonly FinishedChoice[];
  readonly usage: ChatUsage;
}

export type ReadCompletion = { readonly kind: 'choices'; readonly choices: readonly FinishedChoice[]; readonly usage: RunningUsage } | { readonly kind: 'fault'; readonly fault: EngineFault };

/** Reads an engine's whole answer to one prompt. */
export function readCompletion(status: number, text: string, options: CompletionStreamOptions): ReadCompletion {
  const reply = readReply(status, text, options.dialect);
  if (reply.kind === 'fault') return reply;
  const raw = isRecord(reply.body) && Array.isArray(reply.body['choices']) ? reply.body['choices'] as unknown[] : [];
  const choices = raw.flatMap((choice, position) => readChoice(choice, position, options) ?? []);
  if (choices.length !== raw.length || choices.length !== options.choices) return { kind: 'fault', fault: brokenAnswerFault };
  const reading = options.dialect.readUsage(reply.body);
  return { kind: 'choices', choices, usage: reading === undefined ? noUsage : addUsage(noUsage, reading) };
}

function readChoice(choice: unknown, position: number, { prefix, firstIndex, isSilent = false }: CompletionStreamOptions): FinishedChoice | undefined {
  if (!isRecord(choice) || typeof choice['text'] !== 'string') return undefined;
  const finish = readCompletionFinish(choice['finish_reason']);
  if (finish === null || finish === 'broken') return undefined;
  const index = typeof choice['index'] === 'number' ? choice['index'] : position;
  if (isSilent) return { text: prefix, index: firstIndex + index, logprobs: null, finish_reason: 'length' };
  return { text: prefix + choice['text'], index: firstIndex + index, logprobs: toCompletionLogprobs(choice['logprobs'], prefix.length), finish_reason: finish };
}

/** Joins chunks into whole choices, where the engine had to be asked for a stream. */
export class CompletionJoiner {
  private readonly choices = new Map<number, CompletionChoice>();

  add(chunk: CompletionChunk): void {
    for (const choice of chunk.choices) {
      const before = this.choices.get(choice.index);
      this.choices.set(choice.index, before === undefined ? choice : {
        index: choice.index,
        text: before.text + choice.text,
        logprobs: joinCompletionLogprobs(before.logprobs, choice.logprobs),
        finish_reason: choice.finish_reason ?? before.finish_reason,
      });
    }
  }

  /** Call it only after the stream completed. */
  finished(): readonly FinishedChoice[] {
    return [...this.choices.values()].map((choice) => ({ ...choice, finish_reason: choice.finish_reason ?? 'stop' }));
  }
}

export function completionAnswer({ id, created, model }: AnswerIdentity, choices: readonly FinishedChoice[], usage: RunningUsage): CompletionAnswer {
  return { id, object: 'text_completion', created, model, choices: [...choices].sort((left, right) => left.index - right.index), usage: toChatUsage(usage) };
}

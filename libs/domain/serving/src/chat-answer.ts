import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault } from './engine-fault.js';
import { readReply } from './engine-reply.js';
import { addUsage, noUsage, type RunningUsage } from './engine-usage.js';
import { isRecord } from './json-fields.js';
import { toolCallId } from './chat-delta.js';
import { readChatLogprobs, type ChatLogprobs } from './chat-logprobs.js';
import type { AnswerIdentity } from './chat-stream.js';
import { toChatUsage, type ChatUsage } from './chat-usage.js';
import { readFinishReason, type FinishReason } from './finish-reason.js';

export interface AnswerToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface AnswerMessage {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly refusal: string | null;
  readonly reasoning?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly AnswerToolCall[];
  readonly function_call?: { readonly name: string; readonly arguments: string };
}

export interface ChatAnswer extends AnswerIdentity {
  readonly object: 'chat.completion';
  readonly choices: readonly { readonly index: number; readonly message: AnswerMessage; readonly logprobs: ChatLogprobs | null; readonly finish_reason: FinishReason }[];
  readonly usage: ChatUsage;
}

export type NormalisedAnswer =
  | { readonly kind: 'answer'; readonly answer: ChatAnswer; readonly usage: RunningUsage; readonly finishReason: FinishReason }
  | { readonly kind: 'fault'; readonly fault: EngineFault };

/** Turns an engine's whole answer into OpenAI's, with our id and model name and nothing of the engine's own. */
export function normaliseAnswer(status: number, text: string, identity: AnswerIdentity, dialect: EngineDialect): NormalisedAnswer {
  const reply = readReply(status, text, dialect);
  if (reply.kind === 'fault') return reply;
  const { body } = reply;
  const choices = readChoices(body, identity);
  const [first] = choices ?? [];
  if (choices === undefined || first === undefined) return { kind: 'fault', fault: brokenAnswerFault };
  const reading = dialect.readUsage(body);
  const usage = reading === undefined ? noUsage : addUsage(noUsage, reading);
  return { kind: 'answer', answer: { ...identity, object: 'chat.completion', choices, usage: toChatUsage(usage) }, usage, finishReason: first.finish_reason };
}

function readChoices(body: unknown, identity: AnswerIdentity): ChatAnswer['choices'] | undefined {
  if (!isRecord(body) || !Array.isArray(body['choices'])) return undefined;
  const choices: ChatAnswer['choices'][number][] = [];
  for (const [position, choice] of body['choices'].entries()) {
    if (!isRecord(choice) || !isRecord(choice['message'])) return undefined;
    const finish = readFinishReason(choice['finish_reason']);
    if (finish.kind !== 'ended') return undefined;
    const index = typeof choice['index'] === 'number' ? choice['index'] : position;
    choices.push({ index, message: readMessage(choice['message'], identity, index), logprobs: readChatLogprobs(choice['logprobs']), finish_reason: finish.reason });
  }
  return choices;
}

function readMessage(message: Readonly<Record<string, unknown>>, identity: AnswerIdentity, choice: number): AnswerMessage {
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'].filter(isRecord) : [];
  const toolCalls = calls.map((call, index): AnswerToolCall => {
    const called = isRecord(call['function']) ? call['function'] : {};
    const ours = `call_${identity.id.replace(/^chatcmpl-/, '')}_${choice}_${index}`;
    return { id: toolCallId(call['id'], ours), type: 'function', function: { name: textOr(called['name'], ''), arguments: textOr(called['arguments'], '') } };
  });
  const content = textOr(message['content'], null);
  return {
    role: 'assistant',
    content: toolCalls.length > 0 && content === '' ? null : content,
    refusal: textOr(message['refusal'], null),
    ...(typeof message['reasoning'] === 'string' ? { reasoning: message['reasoning'] } : {}),
    ...(typeof message['reasoning_content'] === 'string' ? { reasoning_content: message['reasoning_content'] } : {}),
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    ...(isRecord(message['function_call']) ? { function_call: { name: textOr(message['function_call']['name'], ''), arguments: textOr(message['function_call']['arguments'], '') } } : {}),
  };
}

function textOr<Otherwise>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === 'string' ? value : otherwise;
}

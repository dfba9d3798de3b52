import { ChatStream, type ChatChunk } from './chat-stream.js';
import type { CleanDelta, CleanToolCall } from './chat-delta.js';
import type { EngineDialect, EngineFault } from './engine-dialect.js';
import type { RunningUsage } from './engine-usage.js';
import type { FinishReason } from './finish-reason.js';
import { responseBody, type ResponseBody, type ResponseHead, type ResponseOutputItem, type ResponseState } from './response-object.js';

/** One event; `sequence_number` counts from 0. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

export interface ResponseStep {
  readonly events: readonly ResponseEvent[];
  readonly outcome: 'open' | 'completed' | EngineFault;
}

interface OpenItem {
  readonly kind: 'message' | 'refusal' | 'function_call' | 'reasoning';
  readonly outputIndex: number;
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  text: string;
}

/**
 * Turns an engine's streamed chat into the events of the Responses API: one item after the other, each opened, filled and closed.
 * The last event has the usage; there is no `[DONE]`.
 */
export class ResponseStream {
  private readonly chat: ChatStream;
  private readonly done: ResponseOutputItem[] = [];
  private open: OpenItem | undefined;
  private readonly calls = new Map<number, number>();
  private sequence = 0;
  private hasBegun = false;
  private final: ResponseBody | undefined;

  constructor(private readonly head: ResponseHead, dialect: EngineDialect, private readonly now: () => number) {
    this.chat = new ChatStream({ id: head.id.replace(/^resp_/, ''), created: head.created, model: head.model }, { dialect, includeUsage: false });
  }

  /** Takes the data of one event of the engine's stream. */
  push(data: string): ResponseStep {
    return this.take(this.chat.push(data));
  }

  end(): ResponseStep {
    return this.take(this.chat.end());
  }

  usage(): RunningUsage {
    return this.chat.usage();
  }

  finishReason(): FinishReason | null {
    return this.chat.finishReason();
  }

  /** The whole response; undefined until the stream completed. */
  response(): ResponseBody | undefined {
    return this.final;
  }

  /** The last events of a response that failed in the middle of its stream; the first ones, too, where it had not begun. */
  failure(message: string): readonly ResponseEvent[] {
    const events: ResponseEvent[] = [];
    this.begin(events);
    events.push(this.event('response.failed', { response: this.snapshot({ status: 'failed', error: { code: 'server_error', message } }) }));
    return events;
  }

  private take(step: { readonly chunks: readonly ChatChunk[]; readonly outcome: ResponseStep['outcome'] }): ResponseStep {
    const events: ResponseEvent[] = [];
    for (const { choices } of step.chunks) for (const { delta } of choices) this.takeDelta(delta, events);
    if (step.outcome === 'completed') this.complete(events);
    return { events, outcome: step.outcome };
  }

  private takeDelta(delta: CleanDelta, events: ResponseEvent[]): void {
    this.begin(events);
    const reasoning = delta.reasoning ?? delta.reasoning_content ?? '';
    if (reasoning !== '') this.append('reasoning', reasoning, events);
    if ((delta.content ?? '') !== '') this.append('message', delta.content ?? '', events);
    if ((delta.refusal ?? '') !== '') this.append('refusal', delta.refusal ?? '', events);
    for (const call of delta.tool_calls ?? []) this.takeCall(call, events);
  }

  private begin(events: ResponseEvent[]): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    events.push(this.event('response.created', { response: this.snapshot({}) }), this.event('response.in_progress', { response: this.snapshot({}) }));
  }

  private append(kind: 'message' | 'refusal' | 'reasoning', text: string, events: ResponseEvent[]): void {
    if (this.open?.kind !== kind) {
      this.close('completed', events);
      this.start(kind, '', '', events);
    }
    if (this.open === undefined) return;
    this.open.text += text;
    events.push(this.event(DELTA_EVENTS[kind], { ...this.place(this.open), content_index: 0, delta: text, ...(kind === 'message' ? { logprobs: [] } : {}) }));
  }

  /** Fragments of a call that is closed are dropped: engines send one call after the other. */
  private takeCall(call: CleanToolCall, events: ResponseEvent[]): void {
    const known = this.calls.get(call.index);
    if (known === undefined) {
      this.close('completed', events);
      this.start('function_call', call.id ?? '', call.function.name ?? '', events);
      this.calls.set(call.index, this.open?.outputIndex ?? 0);
    } else if (this.open?.outputIndex !== known) {
      return;
    }
    const text = call.function.arguments ?? '';
    if (this.open === undefined || text === '') return;
    this.open.text += text;
    events.push(this.event('response.function_call_arguments.delta', { ...this.place(this.open), delta: text }));
  }

  private start(kind: OpenItem['kind'], callId: string, name: string, events: ResponseEvent[]): void {
    const outputIndex = this.done.length;
    this.open = { kind, outputIndex, id: `${ID_PREFIXES[kind]}_${this.head.id.replace(/^resp_/, '')}_${outputIndex}`, callId, name, text: '' };
    events.push(this.event('response.output_item.added', { output_index: outputIndex, item: emptied(itemOf(this.open, 'in_progress')) }));
    const part = partOf(this.open);
    if (part !== undefined) events.push(this.event('response.content_part.added', { ...this.place(this.open), content_index: 0, part }));
  }

  private close(status: 'completed' | 'incomplete', events: ResponseEvent[]): void {
    const { open } = this;
    if (open === undefined) return;
    const place = this.place(open);
    const item = itemOf(open, status);
    if (open.kind === 'message') events.push(this.event('response.output_text.done', { ...place, content_index: 0, text: open.text, logprobs: [] }));
    if (open.kind === 'refusal') events.push(this.event('response.refusal.done', { ...place, content_index: 0, refusal: open.text }));
    if (open.kind === 'reasoning') events.push(this.event('response.reasoning_text.done', { ...place, content_index: 0, text: open.text }));
    if (open.kind === 'function_call') events.push(this.event('response.function_call_arguments.done', { ...place, name: open.name, arguments: open.text }));
    const part = partOf(open);
    if (part !== undefined) events.push(this.event('response.content_part.done', { ...place, content_index: 0, part }));
    events.push(this.event('response.output_item.done', { output_index: open.outputIndex, item }));
    this.done.push(item);
    this.open = undefined;
  }

  private complete(events: ResponseEvent[]): void {
    this.begin(events);
    const finish = this.chat.finishReason();
    const incompleteReason = finish === 'length' ? 'max_output_tokens' : finish === 'content_filter' ? 'content_filter' : null;
    // A model that ended at once has said nothing, which is a message too.
    if (this.done.length === 0 && this.open === undefined) this.start('message', '', '', events);
    this.close(incompleteReason === null ? 'completed' : 'incomplete', events);
    const status = incompleteReason === null ? 'completed' : 'incomplete';
    this.final = this.snapshot({ status, incompleteReason, usage: this.chat.usage(), completedAt: Math.floor(this.now() / 1_000) });
    events.push(this.event(`response.${status}`, { response: this.final }));
  }

  private snapshot(change: Partial<ResponseState>): ResponseBody {
    return responseBody(this.head, { status: 'in_progress', output: this.done, usage: null, error: null, incompleteReason: null, completedAt: null, ...change });
  }

  private place({ id, outputIndex }: OpenItem): { readonly item_id: string; readonly output_index: number } {
    return { item_id: id, output_index: outputIndex };
  }

  private event(type: string, fields: Readonly<Record<string, unknown>>): ResponseEvent {
    const event = { type, sequence_number: this.sequence, ...fields };
    this.sequence += 1;
    return event;
  }
}

const ID_PREFIXES = { message: 'msg', refusal: 'msg', function_call: 'fc', reasoning: 'rs' } as const;
const DELTA_EVENTS = { message: 'response.output_text.delta', refusal: 'response.refusal.delta', reasoning: 'response.reasoning_text.delta' } as const;

function itemOf({ kind, id, callId, name, text }: OpenItem, status: 'in_progress' | 'completed' | 'incomplete'): ResponseOutputItem {
  switch (kind) {
    case 'message': return { type: 'message', id, status, role: 'assistant', content: [{ type: 'output_text', text, annotations: [], logprobs: [] }] };
    case 'refusal': return { type: 'message', id, status, role: 'assistant', content: [{ type: 'refusal', refusal: text }] };
    case 'function_call': return { type: 'function_call', id, status, call_id: callId, name, arguments: text };
    case 'reasoning': return { type: 'reasoning', id, status, summary: [], content: [{ type: 'reasoning_text', text }] };
  }
}

/** An item as it is announced, before its parts. */
function emptied(item: ResponseOutputItem): ResponseOutputItem {
  return item.type === 'function_call' ? item : { ...item, content: [] };
}

function partOf({ kind, text }: OpenItem): unknown {
  if (kind === 'message') return { type: 'output_text', text, annotations: [], logprobs: [] };
  if (kind === 'refusal') return { type: 'refusal', refusal: text };
  return kind === 'reasoning' ? { type: 'reasoning_text', text } : undefined;
}

import { isRecord } from './json-fields.js';

/** What a chunk of ours says of one choice. Only these fields leave the platform; ids, timings and token ids of an engine do not. */
export interface CleanDelta {
  readonly role?: 'assistant';
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly CleanToolCall[];
  readonly function_call?: { readonly name?: string; readonly arguments?: string };
}

export interface CleanToolCall {
  readonly index: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name?: string; readonly arguments?: string };
}

/** A model that calls more tools than this at once is out of control. */
const TOOL_CALLS_MAX = 256;

/** Cleans the deltas of one choice of one answer; it has to know which tool calls have begun. */
export class DeltaCleaner {
  private readonly begun = new Set<number>();

  /** `idPrefix` makes the tool call ids of this choice, where the engine's own must not be shown. */
  constructor(private readonly idPrefix: string) {}

  /** Everything but the role; undefined when the delta says nothing. */
  clean(delta: unknown): CleanDelta | undefined {
    if (!isRecord(delta)) return undefined;
    const toolCalls = this.cleanToolCalls(delta['tool_calls']);
    const cleaned: CleanDelta = {
      ...(isText(delta['content']) ? { content: delta['content'] } : {}),
      ...(isText(delta['refusal']) ? { refusal: delta['refusal'] } : {}),
      ...(isText(delta['reasoning']) ? { reasoning: delta['reasoning'] } : {}),
      ...(isText(delta['reasoning_content']) ? { reasoning_content: delta['reasoning_content'] } : {}),
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
      ...functionCallOf(delta['function_call']),
    };
    return Object.keys(cleaned).length > 0 ? cleaned : undefined;
  }

  hasToolCalls(): boolean {
    return this.begun.size > 0;
  }

  private cleanToolCalls(fragments: unknown): CleanToolCall[] {
    if (!Array.isArray(fragments)) return [];
    return fragments.filter(isRecord).flatMap((fragment, position) => this.cleanToolCall(fragment, position) ?? []);
  }

  /** The first fragment of a call has id, type and name; later ones have arguments and nothing else. */
  private cleanToolCall(fragment: Readonly<Record<string, unknown>>, position: number): CleanToolCall | undefined {
    const index = typeof fragment['index'] === 'number' ? fragment['index'] : position;
    const called = isRecord(fragment['function']) ? fragment['function'] : {};
    const text = typeof called['arguments'] === 'string' ? called['arguments'] : '';
    if (this.begun.has(index)) return text === '' ? undefined : { index, function: { arguments: text } };
    if (this.begun.size >= TOOL_CALLS_MAX) return undefined;
    this.begun.add(index);
    const name = typeof called['name'] === 'string' ? called['name'] : '';
    return { index, id: toolCallId(fragment['id'], `${this.idPrefix}${index}`), type: 'function', function: { name, arguments: text } };
  }
}

/** What came before tool calls: `function_call`, as a request with `functions` gets it. Its name comes once, and its arguments in pieces. */
function functionCallOf(call: unknown): Pick<CleanDelta, 'function_call'> {
  if (!isRecord(call)) return {};
  const { name, arguments: text } = call;
  return { function_call: { ...(isText(name) ? { name } : {}), ...(typeof text === 'string' ? { arguments: text } : {}) } };
}

/** An id that an engine made of its request id says which engine it is; one of the usual form may stay. */
export function toolCallId(given: unknown, ours: string): string {
  return typeof given === 'string' && /^call_[A-Za-z0-9_-]{4,80}$/.test(given) ? given : ours;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

import { responseRequest, type ApiFault, type ResponseInputItem, type ResponseRequest } from '@penstock/contract-http';
import { editJson } from './edit-json.js';
import { isRecord } from './json-fields.js';
import type { JsonDocument } from './read-json.js';
import { faultOfIssues } from './request-fault.js';

export type CheckedResponseRequest = { readonly kind: 'checked'; readonly request: ResponseRequest } | { readonly kind: 'fault'; readonly fault: ApiFault };
export type ChatTranslation = { readonly kind: 'chat'; /** The body as JSON. */ readonly text: string } | { readonly kind: 'fault'; readonly fault: ApiFault };

/** Fields that become something else in a chat, or concern us alone; all others are passed on. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'model', 'input', 'instructions', 'stream', 'store', 'previous_response_id', 'max_output_tokens', 'tools', 'tool_choice', 'text', 'reasoning', 'truncation', 'metadata', 'background',
  'include', 'prompt', 'conversation', 'max_tool_calls', 'service_tier', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'safety_identifier', 'stream_options', 'top_logprobs', 'user', 'n', 'logprobs',
]);
/** What cannot be said to an engine; leaving it out in silence would answer another question. */
const UNSUPPORTED_FIELDS = ['conversation', 'prompt'] as const;

export function checkResponseRequest(document: JsonDocument): CheckedResponseRequest {
  const parsed = responseRequest.safeParse(document.value);
  if (!parsed.success) return { kind: 'fault', fault: faultOfIssues(parsed.error.issues, document.value) };
  const unsupported = UNSUPPORTED_FIELDS.find((field) => (parsed.data[field] ?? undefined) !== undefined) ?? ((parsed.data.top_logprobs ?? 0) > 0 ? 'top_logprobs' : undefined);
  if (unsupported !== undefined) return { kind: 'fault', fault: { code: 'unsupported_parameter', message: `Unsupported parameter: '${unsupported}'. Leave it out${unsupported === 'top_logprobs' ? ', or use /v1/chat/completions' : ' and send the whole input'}.`, param: unsupported } };
  return { kind: 'checked', request: parsed.data };
}

/** The items of a request's input: a text is a message of the user. */
export function inputItemsOf({ input }: ResponseRequest): readonly ResponseInputItem[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
}

/**
 * The same question as the body of a chat; what means the same in both passes byte by byte. `earlier` are the items that a stored
 * response goes on from.
 */
export function toChatBody({ text: source, members }: JsonDocument, request: ResponseRequest, earlier: readonly ResponseInputItem[]): ChatTranslation {
  const messages: ChatMessage[] = typeof request.instructions === 'string' && request.instructions !== '' ? [{ role: 'system', content: request.instructions }] : [];
  for (const [index, item] of [...earlier, ...inputItemsOf(request)].entries()) {
    const fault = addItem(messages, item, `input[${Math.max(0, index - earlier.length)}]`);
    if (fault !== undefined) return { kind: 'fault', fault };
  }
  const { text, reasoning } = request;
  const set = {
    model: request.model,
    messages,
    stream: request.stream === true,
    ...present('max_completion_tokens', request.max_output_tokens),
    ...present('tools', request.tools?.map(({ name, description, parameters, strict }) => ({
      type: 'function', function: { name, ...present('description', description), ...present('parameters', parameters), ...present('strict', strict) },
    }))),
    ...present('tool_choice', toolChoiceOf(request.tool_choice)),
    ...present('response_format', responseFormatOf(text?.format)),
    ...present('verbosity', text?.verbosity),
    ...present('reasoning_effort', reasoning?.effort),
  };
  return { kind: 'chat', text: editJson(source, members, { set, remove: OWN_FIELDS }) };
}

interface ChatMessage {
  readonly role: string;
  readonly content: string | readonly unknown[] | null;
  tool_calls?: unknown[];
  readonly tool_call_id?: string;
}

function addItem(messages: ChatMessage[], item: ResponseInputItem, param: string): ApiFault | undefined {
  if ('role' in item && typeof item.role === 'string') {
    const content = toChatContent(item.content as ItemContent, param);
    if ('code' in content) return content;
    messages.push({ role: item.role === 'developer' ? 'system' : item.role, content: content.content });
  } else if (item.type === 'function_call') {
    const call = { id: item['call_id'], type: 'function', function: { name: item['name'], arguments: item['arguments'] } };
    const last = messages.at(-1);
    if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call];
    else messages.push({ role: 'assistant', content: null, tool_calls: [call] });
  } else if (item.type === 'function_call_output') {
    const content = toChatContent(item['output'] as ItemContent, param);
    if ('code' in content) return content;
    messages.push({ role: 'tool', tool_call_id: String(item['call_id']), content: content.content });
  }
  // What a model thought earlier is not part of what it is asked next.
  return undefined;
}

type ItemContent = string | readonly Readonly<Record<string, unknown>>[];

/** Texts alone become one text, which every chat template takes. */
function toChatContent(content: ItemContent, param: string): { readonly content: string | readonly unknown[] } | ApiFault {
  if (typeof content === 'string') return { content };
  const parts: unknown[] = [];
  for (const [index, part] of content.entries()) {
    const translated = toChatPart(part);
    if (translated === undefined) return { code: 'unsupported_value', message: `Invalid value for '${param}.content[${index}].type': '${String(part['type']).slice(0, 60)}' is not taken. Supported values are: 'input_text', 'output_text', 'input_image', 'refusal'.`, param: `${param}.content[${index}].type` };
    parts.push(translated);
  }
  const texts = parts.flatMap((part) => (isRecord(part) && part['type'] === 'text' ? [String(part['text'])] : []));
  return { content: texts.length === parts.length ? texts.join('\n') : parts };
}

function toChatPart(part: Readonly<Record<string, unknown>>): unknown {
  const type = part['type'];
  if ((type === 'input_text' || type === 'output_text' || type === 'text') && typeof part['text'] === 'string') return { type: 'text', text: part['text'] };
  if (type === 'refusal' && typeof part['refusal'] === 'string') return { type: 'text', text: part['refusal'] };
  if (type === 'input_image' && typeof part['image_url'] === 'string') return { type: 'image_url', image_url: { url: part['image_url'], ...present('detail', part['detail']) } };
  return undefined;
}

function toolChoiceOf(choice: ResponseRequest['tool_choice']): unknown {
  return typeof choice === 'object' && choice !== null ? { type: 'function', function: { name: choice.name } } : choice;
}

function responseFormatOf(format: NonNullable<ResponseRequest['text']>['format']): unknown {
  if (format === undefined || format === null || format.type === 'text') return undefined;
  if (format.type === 'json_object') return { type: 'json_object' };
  const { name, schema, description, strict } = format;
  return { type: 'json_schema', json_schema: { name, schema, ...present('description', description), ...present('strict', strict) } };
}

function present(key: string, value: unknown): Readonly<Record<string, unknown>> {
  return value === undefined || value === null ? {} : { [key]: value };
}

import { chatCompletionRequest, type ApiFault, type ChatCompletionRequest } from '@penstock/contract-http';
import { kindFault } from './chat-kinds.js';
import type { EngineDialect } from './engine-dialect.js';
import { editJson, unsetMembers } from './edit-json.js';
import { isRecord } from './json-fields.js';
import { isPlainChat } from './plain-chat.js';
import { faultOfIssues } from './request-fault.js';
import type { JsonDocument } from './read-json.js';

export type CheckedChatRequest = { readonly kind: 'checked'; readonly request: ChatCompletionRequest } | { readonly kind: 'fault'; readonly fault: ApiFault };

/** Checks a chat request the same way for every engine; what an engine alone can judge is left to it. */
export function checkChatRequest(document: JsonDocument): CheckedChatRequest {
  if (isPlainChat(document.value)) return { kind: 'checked', request: document.value };
  const parsed = chatCompletionRequest.safeParse(document.value);
  if (!parsed.success) return { kind: 'fault', fault: faultOfIssues(parsed.error.issues, document.value) };
  const fault = kindFault(parsed.data, document.value) ?? remoteContentFault(parsed.data.messages) ?? streamOptionsFault(parsed.data);
  return fault === undefined ? { kind: 'checked', request: parsed.data } : { kind: 'fault', fault };
}

/** An engine would fetch the address from inside the network, or read the file from its disk. Takes messages of any shape. */
export function remoteContentFault(messages: readonly Readonly<Record<string, unknown>>[]): ApiFault | undefined {
  for (const [index, { content: parts }] of messages.entries()) {
    if (!Array.isArray(parts)) continue;
    for (const [part, content] of (parts as readonly unknown[]).entries()) {
      for (const [key, value] of isRecord(content) ? Object.entries(content) : []) {
        if (!namesRemoteContent(key, value, 0)) continue;
        const param = `messages[${index}].content[${part}].${key}`;
        return { code: 'unsupported_value', message: `Invalid value for '${param}': only 'data:' URLs are taken; put the bytes into the request.`, param };
      }
    }
  }
  return undefined;
}

/** Parts of messages nest a few levels; what lies deeper is no address that an engine reads. */
const PART_DEPTH_MAX = 8;

/** True for an address other than `data:` under any key that engines read one from: `image_url`, `url`, `file_url`, at any level of the part. */
function namesRemoteContent(key: string, value: unknown, depth: number): boolean {
  if (typeof value === 'object' && value !== null) {
    return depth >= PART_DEPTH_MAX || Object.entries(value).some(([inner, found]) => namesRemoteContent(Array.isArray(value) ? key : inner, found, depth + 1));
  }
  if (!/(?:^|_)url$/i.test(key) || value === null || value === undefined) return false;
  return typeof value !== 'string' || !/^data:/i.test(value);
}

function streamOptionsFault(request: ChatCompletionRequest): ApiFault | undefined {
  if (request.stream_options === undefined || request.stream_options === null || request.stream === true) return undefined;
  return { code: 'invalid_value', message: `The 'stream_options' parameter is only allowed when 'stream' is enabled.`, param: 'stream_options' };
}

/** The prompt and the answer share the context; a limit beyond it is a mistake that engines treat differently. */
export function contextFault(request: ChatRequestFields, contextTokens: number): ApiFault | undefined {
  const param = request.max_completion_tokens === undefined || request.max_completion_tokens === null ? 'max_tokens' : 'max_completion_tokens';
  const asked = request[param];
  if (asked === undefined || asked === null || asked <= contextTokens) return undefined;
  return { code: 'integer_above_max_value', message: `Invalid '${param}': value above maximum. This model's context is ${contextTokens} tokens, but got ${asked} instead.`, param };
}

/** What the engine's body depends on beside the client's own bytes. */
export type ChatRequestFields = Pick<ChatCompletionRequest, 'max_tokens' | 'max_completion_tokens'> & { readonly [field: string]: unknown };

export interface EngineRequestOptions {
  readonly servedModel: string;
  readonly dialect: EngineDialect;
  /** Whether the engine is asked for a stream, which may differ from what the client asked for. */
  readonly stream: boolean;
  readonly cacheSalt?: string | undefined;
}

/**
 * The body for the engine: the client's own bytes with the model's inner name, the fields that make the engine report
 * usage, and without the fields that steer an engine.
 */
export function toEngineRequest(document: JsonDocument, request: ChatRequestFields, options: EngineRequestOptions): string {
  const { dialect, stream, servedModel, cacheSalt } = options;
  const limit = request.max_completion_tokens ?? undefined;
  const stripped = strippedFor(dialect);
  const unset = unsetMembers(request);
  return editJson(document.text, document.members, {
    set: {
      model: servedModel,
      stream,
      ...dialect.fieldsToSet({ stream, cacheSalt }),
      // Engines know the older name; both say the same.
      ...(limit === undefined ? {} : { max_tokens: limit }),
    },
    remove: { has: (key) => stripped.has(key) || unset.includes(key) },
  });
}

/** What is meant for the platform and not for its engines. */
export const PLATFORM_FIELDS = ['stream_options', 'metadata', 'store', 'service_tier', 'user', 'safety_identifier', 'prompt_cache_key'] as const;
const strippedByDialect = new WeakMap<EngineDialect, ReadonlySet<string>>();

function strippedFor(dialect: EngineDialect): ReadonlySet<string> {
  let stripped = strippedByDialect.get(dialect);
  if (stripped === undefined) strippedByDialect.set(dialect, (stripped = new Set([...dialect.fieldsToStrip, ...PLATFORM_FIELDS])));
  return stripped;
}

/** A cheap bound for admission: about four bytes make a token. */
export function estimatePromptTokens(bodyBytes: number): number {
  return Math.ceil(bodyBytes / 4);
}

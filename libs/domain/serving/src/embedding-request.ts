import type { EmbeddingRequest } from '@penstock/contract-http';
import { PLATFORM_FIELDS } from './chat-request.js';
import { editJson, unsetMembers } from './edit-json.js';
import type { EngineDialect } from './engine-dialect.js';
import type { JsonDocument } from './read-json.js';

export interface EngineEmbeddingOptions {
  readonly servedModel: string;
  readonly dialect: EngineDialect;
  readonly cacheSalt: string;
  readonly format: 'float' | 'base64';
}

/** Other names that engines take an input by, and what would change the numbers' form: neither was checked. */
const OTHER_INPUTS = ['messages', 'prompt', 'content', 'embd_normalize', 'endianness', 'embed_dtype'] as const;
/** A caller that sends token ids has added what the model wants around them; one that sends text may want none. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['add_special_tokens']);

/** The body for the engine: the client's own bytes with the model's inner name, and without what steers the engine. */
export function toEngineEmbedding(document: JsonDocument, request: EmbeddingRequest, { servedModel, dialect, cacheSalt, format }: EngineEmbeddingOptions): string {
  return editJson(document.text, document.members, {
    set: { model: servedModel, encoding_format: format, ...dialect.fieldsToSet({ stream: false, cacheSalt }) },
    remove: new Set([
      ...dialect.fieldsToStrip.filter((field) => !OWN_FIELDS.has(field)), ...PLATFORM_FIELDS, ...OTHER_INPUTS, ...unsetMembers(request),
      // One engine passes over `dimensions` in silence; the vectors show whether the model gave what was asked.
      ...(dialect.kind === 'vllm' ? [] : ['dimensions']),
    ]),
  });
}

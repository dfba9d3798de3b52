import type { ChatCompletionRequest } from '@penstock/contract-http';
import { isRecord } from './json-fields.js';

const PLAIN_ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant']);

const isText = (value: unknown, lengthMax: number): boolean => typeof value === 'string' && value.length <= lengthMax;
const isWithin = (value: unknown, min: number, max: number): boolean => typeof value === 'number' && value >= min && value <= max;
const isWholeWithin = (value: unknown, min: number, max: number): boolean => Number.isInteger(value) && isWithin(value, min, max);

/** What most requests are made of. A field that is not here, or another kind of value, is for the schema. */
const plainFields: Readonly<Record<string, (value: unknown) => boolean>> = {
  model: (value) => isText(value, 200) && value !== '',
  messages: (value) => Array.isArray(value) && value.length > 0 && value.length <= 10_000 && value.every(isPlainMessage),
  stream: (value) => typeof value === 'boolean',
  max_tokens: (value) => isWholeWithin(value, 1, 10_000_000),
  max_completion_tokens: (value) => isWholeWithin(value, 1, 10_000_000),
  temperature: (value) => isWithin(value, 0, 2),
  top_p: (value) => isWithin(value, 0, 1),
  frequency_penalty: (value) => isWithin(value, -2, 2),
  presence_penalty: (value) => isWithin(value, -2, 2),
  seed: (value) => Number.isInteger(value),
  stop: (value) => typeof value === 'string',
  user: (value) => isText(value, 512),
};

/**
 * Whether a body is a conversation of plain texts with the usual settings, and so a valid request as it is. It says yes to no other body
 * than the schema does, at a fifth of the cost; where it says no, the schema has to be asked, which also says what is wrong.
 */
export function isPlainChat(value: unknown): value is ChatCompletionRequest {
  if (!isRecord(value)) return false;
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(plainFields, key) || plainFields[key]?.(value[key]) !== true) return false;
  }
  return Object.hasOwn(value, 'model') && Object.hasOwn(value, 'messages');
}

function isPlainMessage(message: unknown): boolean {
  if (!isRecord(message)) return false;
  for (const key of Object.keys(message)) {
    if (key === 'role' ? !PLAIN_ROLES.has(message[key]) : key !== 'content' || typeof message[key] !== 'string') return false;
  }
  return Object.hasOwn(message, 'role') && Object.hasOwn(message, 'content');
}

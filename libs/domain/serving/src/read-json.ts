import type { ApiFault } from '@penstock/contract-http';
import { decodeKey, JSON_DEPTH_MAX, JSON_KEYS_MAX, JSON_VALUES_MAX, outlineJson, type JsonMember } from './json-outline.js';

/** A JSON body: its text, its value, and where its outermost members stand. */
export interface JsonDocument {
  readonly text: string;
  /** Every character is known to be one of ASCII, so that places in the text are places in its bytes. */
  readonly isAscii: boolean;
  readonly value: unknown;
  readonly members: readonly JsonMember[];
}

export type ReadJson = { readonly kind: 'read'; readonly document: JsonDocument } | { readonly kind: 'fault'; readonly fault: ApiFault };

/** Parses a body inside the limits that keep parsing cheap. `isAscii` is what the caller knows of the text. */
export function readJson(text: string, isAscii = false): ReadJson {
  const outline = outlineJson(text);
  if (outline.kind === 'too-deep') return faulty('json_too_deep', `The body nests deeper than ${JSON_DEPTH_MAX} levels. Send a flatter one.`);
  if (outline.kind === 'too-many-values') return faulty('json_too_deep', `The body has more than ${JSON_VALUES_MAX} values. Split it.`);
  if (outline.kind === 'too-many-keys') return faulty('json_too_deep', `The body has more than ${JSON_KEYS_MAX} keys. Split it.`);
  try {
    return { kind: 'read', document: { text, isAscii, value: JSON.parse(withPlainKeys(text, outline.escapedKeys)) as unknown, members: outline.members } };
  } catch {
    return faulty('invalid_json', 'We could not parse the JSON body of your request. Check that it is one complete JSON value in UTF-8.');
  }
}

/**
 * Writes keys without the escapes they do not need. V8 in Node 24.21 takes the key `"\u006e"` for `"\\"` once an object with
 * that key was parsed before, so a field could be hidden from our checks and still reach the engine.
 */
function withPlainKeys(text: string, escapedKeys: readonly (readonly [number, number])[]): string {
  if (escapedKeys.length === 0) return text;
  let plain = '';
  let from = 0;
  for (const [start, end] of escapedKeys) {
    plain += text.slice(from, start) + JSON.stringify(decodeKey(text.slice(start, end)));
    from = end;
  }
  return plain + text.slice(from);
}

function faulty(code: string, message: string): ReadJson {
  return { kind: 'fault', fault: { code, message } };
}

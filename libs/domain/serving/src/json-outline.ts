/** One member of the outermost object, as offsets into the text. */
export interface JsonMember {
  readonly key: string;
  /** Offset of the key's opening quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Offset after the last character of the value. */
  readonly end: number;
}

export type JsonOutline =
  | { readonly kind: 'outline'; readonly members: readonly JsonMember[]; /** Start and end of every key, at any depth, that is written with an escape. */ readonly escapedKeys: readonly (readonly [number, number])[] }
  /** Nested deeper than `depthMax`, or with more values than `valuesMax`: parsing it would hold the event loop. */
  | { readonly kind: 'too-deep' }
  | { readonly kind: 'too-many-values' }
  | { readonly kind: 'too-many-keys' };

/** Deeper JSON than this is nobody's chat request and costs seconds to parse. */
export const JSON_DEPTH_MAX = 64;
/** More values than this in one body take seconds to parse, whatever its size. */
export const JSON_VALUES_MAX = 500_000;
/** Keys cost more than values: three hundred thousand different ones take a second. */
export const JSON_KEYS_MAX = 50_000;

const MINUS = 0x2d;
const DIGIT_NINE = 0x39;
const EXPONENT = 0x65;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Walks over JSON text once without building anything: bounds its depth and finds where the outermost members stand.
 * It does not validate; the members are right if and only if `JSON.parse` takes the same text.
 */
export function outlineJson(text: string, depthMax = JSON_DEPTH_MAX, valuesMax = JSON_VALUES_MAX, countsAll = false): JsonOutline {
  const members: JsonMember[] = [];
  let depth = 0;
  let separators = 0;
  /** At most so many values stand in lists of numbers that were passed over. */
  let passedOver = 0;
  let keys = 0;
  let keyStart = -1;
  let keyEnd = -1;
  let valueStart = -1;
  let lastSolid = -1;
  let [stringStart, stringEnd] = [-1, -1];
  const escapedKeys: [number, number][] = [];
  const endMember = (): void => {
    if (valueStart >= 0) members.push({ key: decodeKey(text.slice(keyStart, keyEnd)), start: keyStart, valueStart, end: lastSolid + 1 });
    keyStart = keyEnd = valueStart = -1;
  };
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // Most of what is long is numbers, and inside a member they mean nothing here.
    if (depth > 1 && ((code >= MINUS && code <= DIGIT_NINE) || code === EXPONENT)) continue;
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) continue;
    if (depth === 1 && code === COMMA) endMember();
    if (depth === 1 && code === CLOSE_BRACE) endMember();
    if (depth === 1 && keyEnd >= 0 && valueStart < 0 && code !== COLON) valueStart = index;
    if (code === QUOTE) {
      const end = endOfString(text, index);
      [stringStart, stringEnd] = [index, end];
      if (depth === 1 && keyStart < 0) [keyStart, keyEnd] = [index, end];
      index = end - 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > depthMax) return { kind: 'too-deep' };
      const end = countsAll || code === OPEN_BRACE ? -1 : endOfNumbers(text, index + 1);
      if (end > 0) {
        passedOver += Math.ceil((end - index) / 2);
        // Close to the limit every value is counted.
        if (separators + passedOver > valuesMax) return outlineJson(text, depthMax, valuesMax, true);
        index = end - 1;
      }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
    } else if (code === COLON) {
      keys += 1;
      if (keys > JSON_KEYS_MAX) return { kind: 'too-many-keys' };
      if (hasEscape(text, stringStart, stringEnd)) escapedKeys.push([stringStart, stringEnd]);
    } else if (code === COMMA) {
      separators += 1;
      if (separators > valuesMax) return { kind: 'too-many-values' };
    }
    lastSolid = index;
  }
  return { kind: 'outline', members, escapedKeys };
}

/** Where a list of nothing but numbers ends, as vectors and token ids are; -1 for any other. Searching for a few characters is far quicker than looking at each. */
function endOfNumbers(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first < MINUS || first > DIGIT_NINE) return -1;
  const end = text.indexOf(']', start);
  if (end < 0) return -1;
  const list = text.slice(start, end);
  return list.includes('"') || list.includes('[') || list.includes('{') || list.includes('}') ? -1 : end;
}

/** Offset after the closing quote of the string that opens at `start`; the text's length when it does not close. */
function endOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote >= 0) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

function hasEscape(text: string, start: number, end: number): boolean {
  // Only the key is looked at: a search that runs on to the end of the text, once for each key, takes seconds.
  return start >= 0 && text.slice(start, end).includes('\\');
}

/** The name that a quoted key stands for. */
export function decodeKey(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}

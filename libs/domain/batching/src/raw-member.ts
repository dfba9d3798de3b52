/**
 * The JSON text of one member of a JSON object, as written: nothing is parsed and written again, so large integers and
 * number formats survive. Of several members with one name the last counts, as in `JSON.parse`. Undefined when there is none.
 * `text` must be valid JSON with an object at its root.
 */
export function rawMember(text: string, name: string): string | undefined {
  let found: string | undefined;
  let index = skipSpace(text, text.indexOf('{') + 1);
  while (index < text.length && text[index] !== '}') {
    const keyEnd = skipString(text, index);
    const key = JSON.parse(text.slice(index, keyEnd)) as string;
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = skipValue(text, valueStart);
    if (key === name) found = text.slice(valueStart, valueEnd);
    index = skipSpace(text, valueEnd);
    if (text[index] === ',') index = skipSpace(text, index + 1);
  }
  return found;
}

function skipSpace(text: string, from: number): number {
  let index = from;
  while (index < text.length && ' \t\r\n'.includes(text.charAt(index))) index += 1;
  return index;
}

/** Index behind the string that begins at `from`. */
function skipString(text: string, from: number): number {
  let index = from + 1;
  while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1;
  return index + 1;
}

/** Index behind the value that begins at `from`. */
function skipValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return skipString(text, from);
  if (first !== '{' && first !== '[') return skipScalar(text, from);
  let depth = 0;
  let index = from;
  while (index < text.length) {
    const character = text[index];
    if (character === '"') {
      index = skipString(text, index);
      continue;
    }
    if (character === '{' || character === '[') depth += 1;
    if (character === '}' || character === ']') depth -= 1;
    index += 1;
    if (depth === 0) break;
  }
  return index;
}

function skipScalar(text: string, from: number): number {
  let index = from;
  while (index < text.length && !',]} \t\r\n'.includes(text.charAt(index))) index += 1;
  return index;
}

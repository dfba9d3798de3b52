import type { JsonMember } from './json-outline.js';

export interface JsonEdit {
  /** Values by key, written as JSON; a key that is there keeps its place, another one comes last. */
  readonly set: Readonly<Record<string, unknown>>;
  readonly remove: ReadonlySet<string>;
}

/**
 * Changes outermost members of a JSON object and leaves every other one as it came, byte by byte: a parse and a
 * stringify would turn 9007199254740993 into …992 and 1.0 into 1. Of a key that stands there twice only the last
 * one stays, which is the one that was checked.
 */
export function editJson(text: string, members: readonly JsonMember[], edit: JsonEdit): string {
  const lastOf = new Map<string, JsonMember>(members.map((member) => [member.key, member]));
  const parts: string[] = [];
  const written = new Set<string>();
  for (const member of members) {
    if (edit.remove.has(member.key) && !Object.hasOwn(edit.set, member.key)) continue;
    if (lastOf.get(member.key) !== member) continue;
    if (Object.hasOwn(edit.set, member.key)) {
      parts.push(`${text.slice(member.start, member.valueStart)}${JSON.stringify(edit.set[member.key])}`);
      written.add(member.key);
    } else {
      parts.push(text.slice(member.start, member.end));
    }
  }
  for (const [key, value] of Object.entries(edit.set)) if (!written.has(key)) parts.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${parts.join(',')}}`;
}

/** Members that say nothing: null means "not set" to OpenAI's API and is an error to some engines, as is an empty list of tools. */
export function unsetMembers(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(value).filter((key) => value[key] === null || (key === 'tools' && Array.isArray(value[key]) && value[key].length === 0));
}

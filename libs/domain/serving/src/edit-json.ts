import type { JsonMember } from './json-outline.js';

export interface JsonEdit {
  /** Values by key, written as JSON; a key that is there keeps its place, another one comes last. */
  readonly set: Readonly<Record<string, unknown>>;
  readonly remove: { has(key: string): boolean };
}

/**
 * Changes outermost members of a JSON object and leaves every other one as it came, byte by byte: a parse and a
 * stringify would turn 9007199254740993 into …992 and 1.0 into 1. Of a key that stands there twice only the last
 * one stays, which is the one that was checked.
 */
export function editJson(text: string, members: readonly JsonMember[], edit: JsonEdit): string {
  const { set, remove } = edit;
  const places = members.length > FEW_MEMBERS ? new Map(members.map(({ key }, index) => [key, index])) : undefined;
  const written = new Set<string>();
  let result = '';
  for (let index = 0; index < members.length; index += 1) {
    const member = members[index];
    if (member === undefined || (places === undefined ? standsAgain(members, index) : places.get(member.key) !== index)) continue;
    const { key, start, end } = member;
    if (Object.hasOwn(set, key)) {
      result += `${result === '' ? '{' : ','}${text.slice(start, member.valueStart)}${JSON.stringify(set[key])}`;
      written.add(key);
    } else if (!remove.has(key)) {
      result += `${result === '' ? '{' : ','}${text.slice(start, end)}`;
    }
  }
  for (const key in set) if (!written.has(key)) result += `${result === '' ? '{' : ','}${JSON.stringify(key)}:${JSON.stringify(set[key])}`;
  return result === '' ? '{}' : `${result}}`;
}

/** Bodies have few members. Beyond that a search for each costs more than a map of all. */
const FEW_MEMBERS = 32;

/** Whether a member of the same name comes later. */
function standsAgain(members: readonly JsonMember[], index: number): boolean {
  const key = members[index]?.key;
  for (let later = index + 1; later < members.length; later += 1) if (members[later]?.key === key) return true;
  return false;
}

/** Members that say nothing: null means "not set" to OpenAI's API and is an error to some engines, as is an empty list of tools. */
export function unsetMembers(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(value).filter((key) => value[key] === null || (key === 'tools' && Array.isArray(value[key]) && value[key].length === 0));
}

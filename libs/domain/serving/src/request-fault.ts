import type { ApiFault } from '@penstock/contract-http';
import type { z } from 'zod';

type Issue = z.core.$ZodIssue;

/** Says in the words of the field what is wrong with a body: the first issue, with the code and the `param` that OpenAI's API uses. */
export function faultOfIssues(issues: readonly Issue[], body: unknown): ApiFault {
  const [first] = issues;
  if (first === undefined) return { code: 'invalid_value', message: 'The request does not match what this route takes.' };
  const { issue, path } = innermost(first, [], body);
  return describeIssue(issue, path, valueAt(body, path));
}

/** A union reports one list of issues per branch: the branch that got furthest says most. */
function innermost(issue: Issue, before: readonly PropertyKey[], body: unknown): { issue: Issue; path: readonly PropertyKey[] } {
  const path = [...before, ...issue.path];
  if (issue.code !== 'invalid_union' || valueAt(body, path) === undefined) return { issue, path };
  const furthest = issue.errors.flat().sort((left, right) => weight(right) - weight(left))[0];
  return furthest === undefined || weight(furthest) === 0 ? { issue, path } : innermost(furthest, path, body);
}

/** A branch that fails on a size or inside the value took its type. */
function weight(issue: Issue): number {
  return 2 * issue.path.length + (issue.code === 'invalid_type' || issue.code === 'invalid_union' ? 0 : 1);
}

function describeIssue(issue: Issue, path: readonly PropertyKey[], value: unknown): ApiFault {
  const param = formatPath(path);
  const name = param === '' ? 'the body' : `'${param}'`;
  const fault = (code: string, message: string): ApiFault => ({ code, message, ...(param === '' ? {} : { param }) });
  if (value === undefined && path.length > 0 && issue.code !== 'unrecognized_keys') return fault('missing_required_parameter', `Missing required parameter: ${name}.`);
  switch (issue.code) {
    case 'invalid_type':
      return fault('invalid_type', `Invalid type for ${name}: expected ${withArticle(issue.expected)}, but got ${describeValue(value)} instead.`);
    case 'too_small':
      return tooSmall(issue, name, value, fault);
    case 'too_big':
      return tooBig(issue, name, value, fault);
    case 'invalid_value':
      return fault(typeof value === 'string' ? 'invalid_value' : 'invalid_type', `Invalid value for ${name}: ${quote(value)}. Supported values are: ${issue.values.map((each) => `'${String(each)}'`).join(', ')}.`);
    case 'unrecognized_keys': {
      const unknown = formatPath([...path, issue.keys[0] ?? '']);
      return { code: 'unknown_parameter', message: `Unknown parameter: '${unknown}'.`, param: unknown };
    }
    case 'invalid_union':
      return 'discriminator' in issue && typeof value === 'string'
        ? fault('invalid_value', `Invalid value for ${name}: ${quote(value)}. ${issue.message}.`)
        : fault('invalid_type', `Invalid type for ${name}: ${describeValue(value)} is not one of the kinds this parameter takes.`);
    case 'invalid_key':
      return fault('invalid_value', `Invalid value for ${name}: ${issue.issues[0]?.message ?? issue.message}.`);
    default:
      return fault('invalid_value', `Invalid value for ${name}: ${issue.message}.`);
  }
}

type Fault = (code: string, message: string) => ApiFault;

function tooSmall(issue: Extract<Issue, { code: 'too_small' }>, name: string, value: unknown, fault: Fault): ApiFault {
  if (issue.origin === 'array') return fault('empty_array', `Invalid ${name}: empty array. Expected an array with minimum length ${issue.minimum}, but got an array with length ${lengthOf(value)} instead.`);
  if (issue.origin === 'string') return fault('invalid_value', `Invalid ${name}: string too short. Expected a string with minimum length ${issue.minimum}.`);
  return fault(issue.origin === 'int' || isWhole(value) ? 'integer_below_min_value' : 'invalid_value', `Invalid ${name}: value below minimum. Expected a value >= ${issue.minimum}, but got ${quote(value)} instead.`);
}

function tooBig(issue: Extract<Issue, { code: 'too_big' }>, name: string, value: unknown, fault: Fault): ApiFault {
  if (issue.origin === 'array') return fault('invalid_value', `Invalid ${name}: array too long. Expected an array with maximum length ${issue.maximum}, but got an array with length ${lengthOf(value)} instead.`);
  if (issue.origin === 'string') return fault('invalid_value', `Invalid ${name}: string too long. Expected a string with maximum length ${issue.maximum}, but got one with length ${lengthOf(value)} instead.`);
  return fault(issue.origin === 'int' || isWhole(value) ? 'integer_above_max_value' : 'invalid_value', `Invalid ${name}: value above maximum. Expected a value <= ${issue.maximum}, but got ${quote(value)} instead.`);
}

/** `['messages', 0, 'role']` as `messages[0].role`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : `${text === '' ? '' : '.'}${shown(String(part))}`;
  return text;
}

/** A longer name is the client's own, and is not repeated whole. */
const SHOWN_NAME_MAX = 100;

function shown(name: string): string {
  return name.length > SHOWN_NAME_MAX ? `${name.slice(0, SHOWN_NAME_MAX)}…` : name;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const part of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[part];
  }
  return current;
}

function withArticle(kind: string): string {
  const name = { int: 'integer', record: 'object' }[kind] ?? kind;
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`;
}

function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number';
  return withArticle(typeof value);
}

/** Longer values are not repeated in an error message. */
const QUOTED_VALUE_MAX = 60;

function quote(value: unknown): string {
  const text = typeof value === 'string' ? `'${value}'` : typeof value === 'object' ? describeValue(value) : String(value);
  return text.length > QUOTED_VALUE_MAX ? `${text.slice(0, QUOTED_VALUE_MAX)}…` : text;
}

/** Numbers in a query come as text. */
function isWhole(value: unknown): boolean {
  return Number.isInteger(typeof value === 'string' && value.trim() !== '' ? Number(value) : value);
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0;
}

import { canonicalJson, type JsonObject } from './json-schema.js';

type Schema = { readonly [key: string]: unknown; readonly type?: unknown; readonly properties?: Record<string, Schema>; readonly required?: readonly string[]; readonly enum?: readonly unknown[]; readonly items?: Schema };

/**
 * What a change to a request or response schema would break for somebody who relies on the old one: a field that is gone,
 * has another type, lost allowed values, or is newly required. Added optional fields break nobody.
 */
export function breakingSchemaChanges(before: unknown, after: unknown, path = ''): string[] {
  const old = (before ?? {}) as Schema;
  const now = (after ?? {}) as Schema;
  const found: string[] = [];
  if (old.type !== undefined && canonicalJson(old.type) !== canonicalJson(now.type ?? null)) found.push(`${path || '.'} was ${String(old.type)} and is ${String(now.type)}`);
  for (const value of old.enum ?? []) if (now.enum !== undefined && !now.enum.includes(value)) found.push(`${path || '.'} no longer allows ${String(value)}`);
  for (const [name, schema] of Object.entries(old.properties ?? {})) {
    const next = now.properties?.[name];
    if (next === undefined) found.push(`${path}.${name} is gone`);
    else found.push(...breakingSchemaChanges(schema, next, `${path}.${name}`));
  }
  for (const name of now.required ?? []) if (!(old.required ?? []).includes(name)) found.push(`${path}.${name} is newly required`);
  if (old.items !== undefined) found.push(...breakingSchemaChanges(old.items, now.items, `${path}[]`));
  return found;
}

/**
 * Published event versions are never edited: any difference, a removal included, is a breaking change. The one exception is a
 * list of allowed words that grows: every event ever written still reads the same.
 */
export function breakingEventChanges(before: JsonObject, after: JsonObject): string[] {
  const old = eventSchemas(before);
  const now = eventSchemas(after);
  return Object.entries(old).flatMap(([type, schema]) => {
    const next = now[type];
    if (next === undefined) return [`event ${type} is gone; published versions stay for ever`];
    return isSameOrWider(schema, next) ? [] : [`event ${type} was edited; publish a new version with an upcaster instead`];
  });
}

/** Equal but for lists of allowed strings (`enum` of a schema) that have more members; a list is never reordered on the way. */
function isSameOrWider(before: unknown, after: unknown): boolean {
  if (typeof before !== 'object' || before === null || typeof after !== 'object' || after === null) return before === after;
  if (Array.isArray(before) || Array.isArray(after)) {
    return Array.isArray(before) && Array.isArray(after) && before.length === after.length && before.every((item, index) => isSameOrWider(item, after[index]));
  }
  const [old, now] = [before as JsonObject, after as JsonObject];
  const keys = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...keys].every((key) => {
    if (!Object.hasOwn(old, key) || !Object.hasOwn(now, key)) return false;
    return isSameOrWider(old[key], now[key]) || (key === 'enum' && old['type'] === 'string' && now['type'] === 'string' && keepsWords(old[key], now[key]));
  });
}

function keepsWords(before: unknown, after: unknown): boolean {
  if (!Array.isArray(before) || !Array.isArray(after) || !after.every((word) => typeof word === 'string')) return false;
  const kept = after.filter((word) => before.includes(word));
  return canonicalJson(kept) === canonicalJson(before);
}

function eventSchemas(document: JsonObject): Record<string, unknown> {
  return ((document['components'] as JsonObject | undefined)?.['schemas'] ?? {}) as Record<string, unknown>;
}

type Operation = { readonly requestBody?: { readonly content: Record<string, { readonly schema?: unknown }> }; readonly responses: Record<string, { readonly content?: Record<string, { readonly schema?: unknown }> }> };

/** Routes that are gone, and schemas that changed in a way that breaks callers. */
export function breakingRouteChanges(before: JsonObject, after: JsonObject): string[] {
  const old = before['paths'] as Record<string, Record<string, Operation>>;
  const now = after['paths'] as Record<string, Record<string, Operation>>;
  const found: string[] = [];
  for (const [path, methods] of Object.entries(old)) {
    for (const [method, operation] of Object.entries(methods)) {
      const next = now[path]?.[method];
      const name = `${method.toUpperCase()} ${path}`;
      if (next === undefined) {
        found.push(`${name} is gone`);
        continue;
      }
      found.push(...breakingSchemaChanges(bodyOf(operation.requestBody?.content), bodyOf(next.requestBody?.content)).map((text) => `${name} request${text}`));
      for (const [status, response] of Object.entries(operation.responses)) {
        found.push(...breakingSchemaChanges(bodyOf(response.content), bodyOf(next.responses[status]?.content)).filter((text) => !text.endsWith('newly required')).map((text) => `${name} ${status}${text}`));
      }
    }
  }
  return found;
}

function bodyOf(content: Record<string, { readonly schema?: unknown }> | undefined): unknown {
  return content === undefined ? undefined : Object.values(content)[0]?.schema;
}

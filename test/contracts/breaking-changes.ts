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

/** Published event versions are never edited: any difference, a removal included, is a breaking change. */
export function breakingEventChanges(before: JsonObject, after: JsonObject): string[] {
  const old = eventSchemas(before);
  const now = eventSchemas(after);
  return Object.entries(old).flatMap(([type, schema]) => {
    const next = now[type];
    if (next === undefined) return [`event ${type} is gone; published versions stay for ever`];
    return canonicalJson(schema) === canonicalJson(next) ? [] : [`event ${type} was edited; publish a new version with an upcaster instead`];
  });
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

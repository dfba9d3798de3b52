import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { contexts, streamOf } from './contexts.js';
import { eventCatalogue } from './event-catalogue.js';
import { parseStoredEvent } from './upcast.js';

const folder = new URL('./golden/', import.meta.url);
const goldenTypes = readdirSync(folder).map((file) => file.replace(/\.json$/, ''));

/** Bodies as they were published. The log keeps such events for ever, so a file is never edited or deleted, only added. */
function golden(type: string): { type: string; data: object } {
  return JSON.parse(readFileSync(new URL(`${type}.json`, folder), 'utf8')) as { type: string; data: object };
}

describe('published events', () => {
  test.each(eventCatalogue.map((contract) => contract.type))('%s has a golden copy', (type) => {
    // A new version gets its example copied here, once: { "type": …, "data": … }.
    expect(goldenTypes).toContain(type);
  });

  test.each(goldenTypes)('the golden copy of %s can still be read, whole', (type) => {
    const { data } = golden(type);
    const parsed = parseStoredEvent(type, data);
    expect(parsed).toMatchObject({ kind: 'parsed' });
    // An upcast event has another shape; one of the newest version must not lose a field.
    if (parsed.kind === 'parsed' && parsed.type === type) expect(parsed.data).toMatchObject(data);
  });

  test.each(eventCatalogue.map((contract) => [contract.type, contract] as const))('the contract of %s is well formed', (type, contract) => {
    expect(type).toMatch(/^[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*\.v[1-9]\d*$/);
    expect(contract.schema.safeParse(contract.example).success).toBe(true);
    expect(contexts).toContain(contract.context);
    expect(contract.aggregate).toMatch(/^([a-z-]+|<[a-z]+>)$/);
    expect(contract.summary.endsWith('.')).toBe(true);
  });

  test('no type is published twice', () => {
    expect(new Set(eventCatalogue.map((contract) => contract.type)).size).toBe(eventCatalogue.length);
  });

  test('streams are named after their context', () => {
    expect(contexts.map(streamOf)).toEqual(contexts.map((context) => `EV_${context.toUpperCase()}`));
  });
});

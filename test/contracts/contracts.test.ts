import { describe, expect, test } from '@jest/globals';
import { Parser } from '@asyncapi/parser';
import { Validator } from '@seriousme/openapi-schema-validator';
import { asyncApiDocument } from './asyncapi.js';
import { breakingEventChanges, breakingRouteChanges, breakingSchemaChanges } from './breaking-changes.js';
import { documents, readDocument, repositoryRoot } from './files.js';
import { canonicalJson } from './json-schema.js';
import { openApiDocument } from '@penstock/contract-http';

const root = repositoryRoot(import.meta.dirname);

describe('the published contracts', () => {
  test('the checked-in documents are what the code says; run `npm run contracts` after a change', async () => {
    expect(canonicalJson(await readDocument(root, 'current', documents.asyncapi))).toBe(canonicalJson(asyncApiDocument()));
    expect(canonicalJson(await readDocument(root, 'current', documents.openapi))).toBe(canonicalJson(openApiDocument()));
  });

  test('nothing that was published breaks', async () => {
    expect(breakingEventChanges(await readDocument(root, 'published', documents.asyncapi), asyncApiDocument())).toEqual([]);
    expect(breakingRouteChanges(await readDocument(root, 'published', documents.openapi), openApiDocument())).toEqual([]);
  });

  test('the AsyncAPI document is valid AsyncAPI 3', async () => {
    const { document, diagnostics } = await new Parser().parse(JSON.stringify(asyncApiDocument()));
    expect(diagnostics.filter((diagnostic) => diagnostic.severity === 0)).toEqual([]);
    expect(document?.version()).toBe('3.0.0');
  });

  test('the OpenAPI document is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(openApiDocument()) as Record<string, object>);
    expect(result.errors).toBeUndefined();
    expect(result.valid).toBe(true);
  });
});

describe('what counts as breaking', () => {
  const before = { type: 'object', required: ['a'], properties: { a: { type: 'string' }, b: { type: 'string', enum: ['x', 'y'] } } };

  test.each([
    ['a removed field', { ...before, properties: { a: before.properties.a } }, '.b is gone'],
    ['another type', { ...before, properties: { ...before.properties, a: { type: 'number' } } }, '.a was string and is number'],
    ['a newly required field', { ...before, required: ['a', 'b'] }, '.b is newly required'],
    ['a value that is no longer allowed', { ...before, properties: { ...before.properties, b: { type: 'string', enum: ['x'] } } }, '.b no longer allows y'],
  ])('%s', (_name, after, message) => {
    expect(breakingSchemaChanges(before, after)).toEqual([message]);
  });

  test('an added optional field is not', () => {
    expect(breakingSchemaChanges(before, { ...before, properties: { ...before.properties, c: { type: 'string' } } })).toEqual([]);
  });

  test('any edit of a published event is', () => {
    const published = { components: { schemas: { 'x.made.v1': before } } };
    const edited = { components: { schemas: { 'x.made.v1': { ...before, properties: { ...before.properties, c: { type: 'string' } } } } } };
    expect(breakingEventChanges(published, edited)).toHaveLength(1);
    expect(breakingEventChanges(published, { components: { schemas: {} } })).toHaveLength(1);
    expect(breakingEventChanges(published, published)).toEqual([]);
  });

  test('a list of allowed words that grows is the one edit of a published event that is not', () => {
    const documentOf = (words: unknown, more: object = {}) => ({ components: { schemas: { 'x.made.v1': { type: 'object', properties: { kind: { type: 'string', enum: words, ...more }, list: { type: 'array', items: { type: 'string', enum: ['p'] } } } } } } });
    const published = documentOf(['a', 'b']);
    expect(breakingEventChanges(published, documentOf(['a', 'b', 'c']))).toEqual([]);
    expect(breakingEventChanges(published, documentOf(['a', 'c', 'b']))).toEqual([]);
    for (const edited of [documentOf(['a']), documentOf(['a', 'c']), documentOf(['b', 'a', 'c']), documentOf(['a', 'b', 3]), documentOf('a'), documentOf(['a', 'b', 'c'], { maxLength: 3 })]) {
      expect(breakingEventChanges(published, edited)).toHaveLength(1);
    }
  });

  test('a field that is called enum is no list of allowed words', () => {
    const documentOf = (values: readonly string[]) => ({ components: { schemas: { 'x.made.v1': { type: 'object', example: { enum: values } } } } });
    expect(breakingEventChanges(documentOf(['a']), documentOf(['a', 'b']))).toHaveLength(1);
  });

  test('a route that is gone is', () => {
    const operation = { responses: { '200': {} } };
    expect(breakingRouteChanges({ paths: { '/a': { get: operation } } }, { paths: {} })).toEqual(['GET /a is gone']);
  });
});

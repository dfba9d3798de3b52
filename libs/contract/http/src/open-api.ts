import { z } from 'zod';
import { openAiErrorBody, problemBody } from './error-body.js';
import { jsonSchemaOf, type JsonObject } from './json-schema.js';
import { routes, type RouteContract } from './routes.js';
import { tensorErrorBody } from './tensors.js';

/** The HTTP contracts as an OpenAPI 3.1 document, from the same route table that the gateway serves. */
export function openApiDocument(): JsonObject {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const entry = (paths[route.path] ??= {});
    entry[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Penstock API', version: '1.0.0', description: 'OpenAI-compatible inference under `/v1`, the Open Inference Protocol under `/v2`, administration under `/admin/v1`.', license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: 'http://127.0.0.1:8080' }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: jsonSchemaOf(openAiErrorBody), Problem: jsonSchemaOf(problemBody), TensorError: jsonSchemaOf(tensorErrorBody) },
    },
  };
}

function operation(route: RouteContract): JsonObject {
  const admin = route.path.startsWith('/admin/');
  const error = admin
    ? { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
    : { 'application/json': { schema: { $ref: `#/components/schemas/${route.path.startsWith('/v2') ? 'TensorError' : 'Error'}` } } };
  const content = route.response === 'empty' ? undefined : route.response === 'binary' ? { 'application/octet-stream': {} } : { 'application/json': { schema: jsonSchemaOf(route.response) } };
  return {
    operationId: operationId(route),
    summary: route.summary,
    tags: [admin ? 'admin' : 'inference'],
    security: route.access === 'none' ? [] : [{ apiKey: [] }],
    parameters: [...pathParameters(route.path), ...queryParameters(route)],
    ...requestBody(route),
    responses: { [String(route.status)]: { description: 'Done.', ...(content === undefined ? {} : { content }) }, default: { description: 'What went wrong, with a stable code and the next step.', content: error } },
  };
}

function operationId(route: RouteContract): string {
  const words = route.path.split('/').filter((part) => part.length > 0 && part !== 'v1').map((part) => part.replace(/^\{(.*)\}$/, 'by-$1'));
  return [route.method.toLowerCase(), ...words].join('-').replaceAll('_', '-');
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => ({ name: match[1], in: 'path', required: true, schema: { type: 'string' } }));
}

function queryParameters(route: RouteContract): JsonObject[] {
  if (!(route.query instanceof z.ZodObject)) return [];
  const { properties, required } = jsonSchemaOf(route.query) as { properties?: Record<string, JsonObject>; required?: string[] };
  return Object.entries(properties ?? {}).map(([name, schema]) => ({ name, in: 'query', required: required?.includes(name) ?? false, schema }));
}

function requestBody(route: RouteContract): JsonObject {
  if (route.bodyKind === 'multipart') {
    const schema = { type: 'object', required: ['file', 'purpose'], properties: { file: { type: 'string', format: 'binary' }, purpose: { type: 'string' } } };
    return { requestBody: { required: true, content: { 'multipart/form-data': { schema } } } };
  }
  return route.body === undefined ? {} : { requestBody: { required: true, content: { 'application/json': { schema: jsonSchemaOf(route.body) } } } };
}

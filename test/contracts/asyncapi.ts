import { contexts, eventCatalogue, streamOf } from '@penstock/contract-events';
import { jsonSchemaOf, type JsonObject } from './json-schema.js';

/** The event contracts as an AsyncAPI 3 document: one channel per context, one message per published event version. */
export function asyncApiDocument(): JsonObject {
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  const messages: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};
  for (const event of eventCatalogue) {
    schemas[event.type] = jsonSchemaOf(event.schema);
    messages[event.type] = {
      name: event.type,
      title: event.type,
      summary: event.summary,
      contentType: 'application/json',
      headers: { $ref: '#/components/schemas/CloudEventHeaders' },
      payload: { $ref: `#/components/schemas/${event.type}` },
      examples: [{ name: 'example', payload: event.example }],
    };
  }
  for (const context of contexts) {
    const events = eventCatalogue.filter((event) => event.context === context);
    if (events.length === 0) continue;
    channels[context] = {
      address: `ev.${context}.{aggregate}.{id}`,
      title: `Stream ${streamOf(context)}`,
      description: 'One literal subject per aggregate; the version of an aggregate is the stream sequence of its last event.',
      parameters: { aggregate: { description: 'Kind of aggregate, such as `replica`.' }, id: { description: 'Letters, digits, `_` and `-`.' } },
      messages: Object.fromEntries(events.map((event) => [event.type, { $ref: `#/components/messages/${event.type}` }])),
    };
    operations[`receive-${context}`] = { action: 'receive', channel: { $ref: `#/channels/${context}` }, summary: `Follow the ${context} context.` };
  }
  schemas['CloudEventHeaders'] = cloudEventHeaders;
  return {
    asyncapi: '3.0.0',
    info: { title: 'Penstock event log', version: '1.0.0', description: 'Every decision that changes the platform, as CloudEvents 1.0 in binary mode on NATS JetStream.', license: { name: 'Apache-2.0' } },
    defaultContentType: 'application/json',
    channels,
    operations,
    components: { messages, schemas },
  };
}

const text = { type: 'string' };
const cloudEventHeaders = {
  type: 'object',
  required: ['ce-specversion', 'ce-id', 'ce-type', 'ce-source', 'ce-time', 'ce-correlationid', 'ce-causationid'],
  properties: {
    'ce-specversion': { const: '1.0' },
    'ce-id': { ...text, description: 'Stable over retries: `<command id>.<index>`.' },
    'ce-type': { ...text, description: '`<noun>.<past-verb>.v<N>`.' },
    'ce-source': text,
    'ce-time': { ...text, format: 'date-time' },
    'ce-subject': text,
    'ce-correlationid': text,
    'ce-causationid': text,
    traceparent: { ...text, description: 'W3C trace context.' },
  },
};

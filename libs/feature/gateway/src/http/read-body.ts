import { faultOfIssues, readJson, type JsonDocument } from '@penstock/domain-serving';
import { isAscii } from 'node:buffer';
import type { z } from 'zod';
import { RequestFault } from './request-fault.js';

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** The JSON document of a body, inside the limits of {@link readJson}. Throws a {@link RequestFault}. */
export function readDocument(body: unknown): JsonDocument {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  if (bytes.length === 0) throw new RequestFault({ code: 'invalid_json', message: 'The request has no body. Send a JSON object.' });
  let text: string;
  const isPlain = isAscii(bytes);
  try {
    // Most bodies are plain English or escaped, and one byte a character needs no decoder.
    text = isPlain ? bytes.toString('latin1') : strictUtf8.decode(bytes);
  } catch {
    throw new RequestFault({ code: 'invalid_json', message: 'The body is not valid UTF-8. Encode it as UTF-8.' });
  }
  const outcome = readJson(text, isPlain);
  if (outcome.kind === 'fault') throw new RequestFault(outcome.fault);
  return outcome.document;
}

export function parseWith(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new RequestFault(faultOfIssues(parsed.error.issues, value));
  return parsed.data;
}

/** Clients write lists as `name=a&name=b` or `name[]=a`; both come out as `name`. */
export function plainQuery(query: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query as object).map(([key, value]) => [key.endsWith('[]') ? key.slice(0, -2) : key, value as unknown]));
}

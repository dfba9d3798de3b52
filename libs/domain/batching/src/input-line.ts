import { modelName } from '@penstock/contract-events';
import { z } from 'zod';
import { rawMember } from './raw-member.js';

/** One thing that is wrong with the input of a batch; shown to its owner as it is. */
export interface InputFault {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  /** From 1; null when the fault is not in one line. */
  readonly line: number | null;
}

/** A line that can be run. */
export interface InputLine {
  readonly customId: string;
  readonly url: string;
  readonly model: string;
  /** The JSON text of `body` as the customer wrote it: numbers keep every digit. */
  readonly bodyText: string;
  /** What an embedding has to read: one for a text or a list of token ids, and one for each of several. */
  readonly inputs: number;
}

export type ParsedLine = { readonly kind: 'line'; readonly line: InputLine } | { readonly kind: 'blank' } | { readonly kind: 'fault'; readonly fault: InputFault };

const CUSTOM_ID_CHARACTERS_MAX = 512;

const inputLine = z.looseObject({
  custom_id: z.string().min(1).max(CUSTOM_ID_CHARACTERS_MAX),
  method: z.literal('POST'),
  url: z.string().max(200),
  body: z.looseObject({ model: modelName, stream: z.literal(false).nullable().optional() }),
});

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads one line of a batch input. `bytes` is null for a line that is too long to be read. */
export function parseInputLine(bytes: Uint8Array | null, lineNumber: number, lineBytesMax: number): ParsedLine {
  if (bytes === null) return fault('line_too_long', `Line ${lineNumber} is longer than ${lineBytesMax} bytes; split the request or shorten it.`, null, lineNumber);
  const text = decode(bytes);
  if (text === undefined) return fault('invalid_json_line', `Line ${lineNumber} is not valid UTF-8; save the file as UTF-8 and upload it again.`, null, lineNumber);
  if (text.trim() === '') return { kind: 'blank' };
  const value = parseJson(text);
  if (value === undefined) return fault('invalid_json_line', `Line ${lineNumber} is not valid JSON; each line must be one JSON object.`, null, lineNumber);
  const parsed = inputLine.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const param = issue?.path.join('.') ?? '';
    return fault('invalid_request', `Line ${lineNumber}: ${explain(param, issue?.message ?? '')}`, param === '' ? null : param, lineNumber);
  }
  const bodyText = rawMember(text, 'body');
  if (bodyText === undefined) return fault('invalid_request', `Line ${lineNumber}: body is missing.`, 'body', lineNumber);
  return { kind: 'line', line: { customId: parsed.data.custom_id, url: parsed.data.url, model: parsed.data.body.model, bodyText, inputs: inputsOf(parsed.data.body['input']) } };
}

/** A list of token ids is one input. */
function inputsOf(input: unknown): number {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1;
}

function explain(param: string, reason: string): string {
  if (param === '') return 'the line must be a JSON object with custom_id, method, url and body.';
  if (param === 'body.stream') return 'body.stream must be false or left out: a batch has no one to stream to.';
  return `${param} is not as it should be (${reason}).`;
}

function fault(code: string, message: string, param: string | null, line: number): ParsedLine {
  return { kind: 'fault', fault: { code, message, param, line } };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The parsed value; undefined, which JSON cannot mean, for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

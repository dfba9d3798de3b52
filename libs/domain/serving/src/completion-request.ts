import { completionRequest, type ApiFault, type CompletionRequest } from '@penstock/contract-http';
import { PLATFORM_FIELDS } from './chat-request.js';
import { editJson, unsetMembers } from './edit-json.js';
import type { EngineDialect } from './engine-dialect.js';
import type { JsonDocument } from './read-json.js';
import { faultOfIssues } from './request-fault.js';

export type CheckedCompletionRequest = { readonly kind: 'checked'; readonly request: CompletionRequest } | { readonly kind: 'fault'; readonly fault: ApiFault };

/** One prompt of a request: text or token ids. */
export type CompletionPrompt = string | readonly number[];

/** Checks a completion request the same way for every engine. */
export function checkCompletionRequest(document: JsonDocument): CheckedCompletionRequest {
  const parsed = completionRequest.safeParse(document.value);
  if (!parsed.success) return { kind: 'fault', fault: faultOfIssues(parsed.error.issues, document.value) };
  const fault = unsupportedFault(parsed.data);
  return fault === undefined ? { kind: 'checked', request: parsed.data } : { kind: 'fault', fault };
}

function unsupportedFault(request: CompletionRequest): ApiFault | undefined {
  if ((request.suffix ?? '') !== '') return { code: 'unsupported_parameter', message: `Unsupported parameter: 'suffix'. Put what comes after into the prompt, in the form the model was trained on.`, param: 'suffix' };
  const best = request.best_of ?? 0;
  if (best > (request.n ?? 1)) return { code: 'unsupported_value', message: `Unsupported value: 'best_of' above 'n' is not taken. Ask for ${best} with 'n' and choose among them.`, param: 'best_of' };
  if (request.stream_options !== undefined && request.stream_options !== null && request.stream !== true) {
    return { code: 'invalid_value', message: `The 'stream_options' parameter is only allowed when 'stream' is enabled.`, param: 'stream_options' };
  }
  return undefined;
}

/** The prompts in their order; choice `n` of prompt `p` has the index `p * n_asked + n`. */
export function promptsOf({ prompt }: CompletionRequest): readonly CompletionPrompt[] {
  if (typeof prompt === 'string') return [prompt];
  return typeof prompt[0] === 'number' ? [prompt as number[]] : prompt as string[] | number[][];
}

/** What is put before each answer when the engine does not echo the prompt itself; a fault where only an engine could. */
export function echoOf(request: CompletionRequest, prompt: CompletionPrompt, dialect: EngineDialect): { readonly prefix: string } | ApiFault {
  if (request.echo !== true || dialect.echoesPrompts) return { prefix: '' };
  if (typeof prompt === 'string' && typeof request.logprobs !== 'number') return { prefix: prompt };
  return { code: 'unsupported_parameter', message: `This model's engine echoes text prompts without 'logprobs' only. Leave 'echo' or 'logprobs' out, or send the prompt as text.`, param: 'echo' };
}

/** Whether nothing is to be written: engines write a token at least, which is asked for and not shown. One that echoes the prompt itself knows the case. */
export function writesNothing(request: CompletionRequest, dialect: EngineDialect): boolean {
  return request.max_tokens === 0 && !(request.echo === true && dialect.echoesPrompts);
}

export interface EngineCompletionOptions {
  readonly servedModel: string;
  readonly dialect: EngineDialect;
  readonly stream: boolean;
  readonly cacheSalt: string;
  readonly prompt: CompletionPrompt;
}

/** As OpenAI's API has it; an engine of another mind would go on to the end of its context. */
export const COMPLETION_TOKENS_DEFAULT = 16;

/** Fields of a completion that a dialect strips elsewhere, since a chat has no use for them. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['prompt', 'echo']);

/** The body for the engine: the client's own bytes with one prompt, the model's inner name and what makes the engine report usage. */
export function toEngineCompletion(document: JsonDocument, request: CompletionRequest, options: EngineCompletionOptions): string {
  const { dialect, stream, servedModel, cacheSalt, prompt } = options;
  const isOnly = request.prompt === prompt;
  return editJson(document.text, document.members, {
    set: {
      model: servedModel,
      stream,
      ...(isOnly ? {} : { prompt }),
      ...(writesNothing(request, dialect) ? { max_tokens: 1 } : typeof request.max_tokens === 'number' ? {} : { max_tokens: COMPLETION_TOKENS_DEFAULT }),
      ...dialect.fieldsToSet({ stream, cacheSalt }),
      ...(typeof request.logprobs === 'number' ? dialect.completionLogprobs(request.logprobs) : {}),
    },
    remove: new Set([
      ...dialect.fieldsToStrip.filter((field) => !OWN_FIELDS.has(field)), ...PLATFORM_FIELDS, 'suffix', 'best_of', 'messages',
      ...(dialect.echoesPrompts ? [] : ['echo']), ...unsetMembers(request),
    ]),
  });
}

import { describe, expect, test } from '@jest/globals';
import { chatCompletion, chatCompletionChunk, moderationAnswer, openAiErrorBody, responseObject, textCompletion, toOpenAiError, errorCatalogue, uploadObject, uploadPart, type ModerationAnswer } from '@penstock/contract-http';
import {
  ChatStream, CompletionStream, completionAnswer, completionUsageChunk, dialectOf, noUsage, normaliseAnswer, readCompletion, ResponseStream, toModeration,
  type ChatAnswer, type ChatChunk, type CompletionAnswer, type CompletionChunk, type ResponseBody,
} from '@penstock/domain-serving';
import type OpenAI from 'openai';
import type OpenAI7 from 'openai7';
import type { z } from 'zod';

/**
 * The official package's own types as the oracle: the compiler refuses these functions when what we send is not what its clients
 * expect. Lists of ours are readonly, which theirs are not and which says nothing of the wire.
 */
type Wire<Value> = Value extends readonly (infer Item)[] ? Wire<Item>[] : Value extends object ? { -readonly [Key in keyof Value]: Wire<Value[Key]> } : Value;

const asChunk = (chunk: Wire<ChatChunk>): OpenAI.ChatCompletionChunk & OpenAI7.ChatCompletionChunk => chunk;
const asCompletion = (answer: Wire<ChatAnswer>): OpenAI.ChatCompletion & OpenAI7.ChatCompletion => answer;
const asText = (answer: Wire<CompletionAnswer>): WithLooseLogprobs<OpenAI.Completion> & WithLooseLogprobs<OpenAI7.Completion> => answer;
/** Their type of a chunk has a finish reason always; their own server sends null until the end. */
const asTextChunk = (chunk: Wire<CompletionChunk>): Omit<OpenAI.Completion, 'choices' | 'usage'> => chunk;
/** What a request said comes back as it was said; usage is null in the snapshots before the last. */
type Echoed = 'tools' | 'tool_choice' | 'text' | 'reasoning' | 'metadata' | 'user';
const asResponse = (response: Omit<Wire<ResponseBody>, Echoed | 'usage'> & { usage: NonNullable<Wire<ResponseBody>['usage']> }): Omit<OpenAI.Responses.Response & OpenAI7.Responses.Response, Echoed> => response;

/** Their logprobs have numbers only; their own server sends null for the first token of an echoed prompt. */
type WithLooseLogprobs<Completion extends { choices: unknown[] }> = Omit<Completion, 'choices'> & { choices: (Omit<OpenAI.CompletionChoice, 'logprobs'> & { logprobs: unknown })[] };

const identity = { id: 'chatcmpl-1', created: 1, model: 'public' };
const dialect = dialectOf('vllm');
const chunk = (delta: object, finish: string | null = null) => JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], usage: { prompt_tokens: 1, completion_tokens: 1 } });

const asUpload = (upload: z.infer<typeof uploadObject>): Omit<OpenAI.Uploads.Upload & OpenAI7.Uploads.Upload, 'file'> => upload;
const asPart = (part: z.infer<typeof uploadPart>): OpenAI.Uploads.UploadPart & OpenAI7.Uploads.UploadPart => part;
/** Their types name the input of each category apart. */
const asModeration = (answer: Wire<ModerationAnswer>): Omit<OpenAI.ModerationCreateResponse, 'results'> & { results: Pick<OpenAI.Moderation, 'categories' | 'category_scores' | 'flagged'>[] } => answer;

describe('what we send is what the official types say', () => {
  test('chunks and whole chats', () => {
    const stream = new ChatStream(identity, { dialect, includeUsage: true });
    const chunks = [chunk({ role: 'assistant', content: 'x' }), chunk({ tool_calls: [{ index: 0, id: 'call_1234', function: { name: 'f', arguments: '{}' } }] }), chunk({}, 'tool_calls'), '[DONE]'].flatMap((data) => stream.push(data).chunks);
    for (const each of chunks) expect(asChunk(chatCompletionChunk.parse(each) as unknown as Parameters<typeof asChunk>[0])).toEqual(each);
    const whole = normaliseAnswer(200, JSON.stringify({ choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1 } }), identity, dialect);
    if (whole.kind === 'fault') throw new Error(whole.fault.message);
    expect(asCompletion(chatCompletion.parse(whole.answer) as unknown as Parameters<typeof asCompletion>[0])).toEqual(whole.answer);
  });

  test('completions, streamed and whole', () => {
    const options = { dialect, includeUsage: true, firstIndex: 0, choices: 1, prefix: '' };
    const stream = new CompletionStream(identity, options);
    const data = JSON.stringify({ object: 'text_completion', choices: [{ index: 0, text: 'x', logprobs: { tokens: ['x'], token_logprobs: [-1], top_logprobs: [{ x: -1 }], text_offset: [0] }, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1 } });
    for (const each of [...stream.push(data).chunks, completionUsageChunk(identity, stream.usage())]) expect(asTextChunk(textCompletion.parse(each) as unknown as Wire<CompletionChunk>)).toEqual(each);
    const read = readCompletion(200, data, options);
    if (read.kind === 'fault') throw new Error(read.fault.message);
    const answer = completionAnswer(identity, read.choices, read.usage);
    expect(asText(textCompletion.parse(answer) as unknown as Wire<CompletionAnswer>)).toEqual(answer);
  });

  test('responses', () => {
    const stream = new ResponseStream({ id: 'resp_1', created: 1, model: 'public', request: { model: 'public', input: 'x' } }, dialect, () => 1_000);
    const events = [chunk({ role: 'assistant', reasoning: 'r' }), chunk({ content: 'x' }), chunk({ tool_calls: [{ index: 0, id: 'call_1234', function: { name: 'f', arguments: '{}' } }] }), chunk({}, 'tool_calls'), '[DONE]'].flatMap((data) => stream.push(data).events);
    const response = stream.response();
    expect(asResponse(responseObject.parse(response) as unknown as Parameters<typeof asResponse>[0])).toEqual(response);
    expect(response?.output.map((item) => item.type)).toEqual(['reasoning', 'message', 'function_call']);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    const types: ReadonlySet<string> = new Set<OpenAI.Responses.ResponseStreamEvent['type']>([
      'response.created', 'response.in_progress', 'response.completed', 'response.output_item.added', 'response.output_item.done', 'response.content_part.added', 'response.content_part.done', 'response.output_text.delta', 'response.output_text.done',
      'response.function_call_arguments.delta', 'response.function_call_arguments.done', 'response.reasoning_text.delta', 'response.reasoning_text.done',
    ]);
    expect(events.filter(({ type }) => !types.has(type))).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { usage: { input_tokens: 1 } } });
  });

  test('uploads and moderations', () => {
    const upload = { id: 'upload_1', object: 'upload' as const, bytes: 1, created_at: 1, expires_at: 2, filename: 'a.jsonl', purpose: 'batch', status: 'pending' as const, file: null };
    const part = { id: 'part_1', object: 'upload.part' as const, created_at: 1, upload_id: 'upload_1' };
    expect([asUpload(uploadObject.parse(upload)), asPart(uploadPart.parse(part))]).toEqual([upload, part]);
    const result = toModeration({ index: 0, label: 'hate', probs: [0.9, 0.1], num_classes: 2 });
    expect(asModeration(moderationAnswer.parse({ id: 'modr-1', model: 'm', results: [result] })).results[0]).toMatchObject({ flagged: true, categories: { hate: true, violence: false } });
  });

  test('errors of every code', () => {
    for (const code of Object.keys(errorCatalogue)) expect(openAiErrorBody.parse(toOpenAiError({ code, message: 'x' })).error).toEqual({ message: 'x', type: expect.any(String), param: null, code });
    expect(noUsage.known).toBe(false);
  });
});

import { ok, strictEqual } from 'node:assert/strict';
import type { Check, Target } from './check.js';
import type { ImportClient } from './node-clients.js';

const PROMPT = 'What is the capital of France? Answer in one sentence.';
const TOKENS_MAX = 24;

interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}
interface TextResult {
  readonly text: string;
  readonly finishReason: string;
  readonly usage: Usage;
}
interface StreamResult {
  readonly textStream: AsyncIterable<string>;
  readonly finishReason: PromiseLike<string>;
  readonly usage: PromiseLike<Usage>;
}
interface TextOptions {
  readonly model: unknown;
  readonly prompt: string;
  readonly maxOutputTokens: number;
  readonly maxRetries: number;
}
interface AiPackage {
  generateText(options: TextOptions): Promise<TextResult>;
  streamText(options: TextOptions & { readonly onError: (event: { readonly error: unknown }) => void }): StreamResult;
  embedMany(options: { readonly model: unknown; readonly values: readonly string[]; readonly maxRetries: number }): Promise<{ readonly embeddings: readonly (readonly number[])[]; readonly usage: { readonly tokens: number } }>;
}
interface Provider {
  chatModel(name: string): unknown;
  completionModel(name: string): unknown;
  embeddingModel(name: string): unknown;
}
type CreateProvider = (settings: { readonly name: string; readonly baseURL: string; readonly apiKey: string; readonly includeUsage: boolean }) => Provider;

/** Vercel's AI SDK through its provider for compatible servers. */
export async function vercelAiChecks(load: ImportClient): Promise<readonly Check[]> {
  const ai = (await load('ai')) as unknown as AiPackage;
  const { createOpenAICompatible } = (await load('@ai-sdk/openai-compatible')) as unknown as { readonly createOpenAICompatible: CreateProvider };
  const provider = ({ baseUrl, apiKey }: Target): Provider => createOpenAICompatible({ name: 'penstock', baseURL: baseUrl, apiKey, includeUsage: true });
  const chat = (target: Target): TextOptions => ({ model: provider(target).chatModel(target.model), prompt: PROMPT, maxOutputTokens: TOKENS_MAX, maxRetries: 0 });
  return [
    { name: 'generateText', run: async (target) => checkText(await ai.generateText(chat(target))) },
    { name: 'streamText', run: async (target) => checkStream(ai, chat(target)) },
    { name: 'generateText from completions', run: async (target) => checkText(await ai.generateText({ ...chat(target), model: provider(target).completionModel(target.model) })) },
    { name: 'streamText from completions', run: async (target) => checkStream(ai, { ...chat(target), model: provider(target).completionModel(target.model) }) },
    {
      name: 'embedMany', needs: 'embeddings', run: async (target) => {
        const { embeddings, usage } = await ai.embedMany({ model: provider(target).embeddingModel(target.embeddingModel ?? ''), values: ['one', 'two'], maxRetries: 0 });
        strictEqual(embeddings.length, 2);
        ok((embeddings[0]?.length ?? 0) > 1 && usage.tokens > 0);
      },
    },
  ];
}

async function checkStream(ai: AiPackage, options: TextOptions): Promise<void> {
  let failure: unknown;
  const stream = ai.streamText({ ...options, onError: ({ error }) => { failure = error; } });
  let text = '';
  for await (const piece of stream.textStream) text += piece;
  if (failure !== undefined) throw failure;
  checkText({ text, finishReason: await stream.finishReason, usage: await stream.usage });
}

function checkText({ text, finishReason, usage }: TextResult): void {
  ok(text.length > 0, 'no text came');
  ok(finishReason === 'stop' || finishReason === 'length', `finished with ${finishReason}`);
  ok((usage.inputTokens ?? 0) > 0 && (usage.outputTokens ?? 0) > 0, 'no usage came');
}

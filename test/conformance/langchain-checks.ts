import { ok, strictEqual } from 'node:assert/strict';
import type { Check, Target } from './check.js';
import type { ImportClient } from './node-clients.js';

const QUESTION = 'What is the capital of France? Answer in one sentence.';

interface Message {
  readonly content: unknown;
  readonly text?: string;
  readonly usage_metadata?: { readonly input_tokens: number; readonly output_tokens: number };
}
interface Model<Answer> {
  invoke(input: string): Promise<Answer>;
  stream(input: string): Promise<AsyncIterable<Answer>>;
}
interface Settings {
  readonly model: string;
  readonly apiKey: string;
  readonly maxRetries: number;
  readonly configuration: { readonly baseURL: string };
  readonly maxTokens?: number;
  readonly useResponsesApi?: boolean;
}
interface LangChain {
  readonly ChatOpenAI: new (settings: Settings) => Model<Message>;
  readonly OpenAI: new (settings: Settings) => Model<string>;
  readonly OpenAIEmbeddings: new (settings: Settings) => { embedDocuments(texts: readonly string[]): Promise<readonly (readonly number[])[]> };
}

/** LangChain for JavaScript: chat, completions, responses and embeddings. */
export async function langChainChecks(load: ImportClient): Promise<readonly Check[]> {
  const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = (await load('@langchain/openai')) as unknown as LangChain;
  const settings = ({ baseUrl, apiKey, model }: Target): Settings => ({ model, apiKey, maxRetries: 0, maxTokens: 24, configuration: { baseURL: baseUrl } });
  return [
    { name: 'ChatOpenAI.invoke', run: async (target) => checkMessage(await new ChatOpenAI(settings(target)).invoke(QUESTION)) },
    { name: 'ChatOpenAI.stream', run: async (target) => checkPieces(await new ChatOpenAI(settings(target)).stream(QUESTION)) },
    { name: 'ChatOpenAI over responses', run: async (target) => checkMessage(await new ChatOpenAI({ ...settings(target), useResponsesApi: true }).invoke(QUESTION)) },
    { name: 'ChatOpenAI over streamed responses', run: async (target) => checkPieces(await new ChatOpenAI({ ...settings(target), useResponsesApi: true }).stream(QUESTION)) },
    { name: 'OpenAI.invoke', run: async (target) => ok((await new OpenAI(settings(target)).invoke('Paris is')).length > 0) },
    { name: 'OpenAI.stream', run: async (target) => {
      let text = '';
      for await (const piece of await new OpenAI(settings(target)).stream('Paris is')) text += piece;
      ok(text.length > 0, 'no text came');
    } },
    { name: 'OpenAIEmbeddings.embedDocuments', needs: 'embeddings', run: async (target) => {
      const vectors = await new OpenAIEmbeddings(settings({ ...target, model: target.embeddingModel ?? '' })).embedDocuments(['one', 'two']);
      strictEqual(vectors.length, 2);
      ok((vectors[0]?.length ?? 0) > 1, 'the vector is empty: the two sides disagree about base64');
    } },
  ];
}

function textOf({ content, text }: Message): string {
  return typeof content === 'string' ? content : text ?? '';
}

function checkMessage(message: Message): void {
  ok(textOf(message).length > 0, 'no text came');
  ok((message.usage_metadata?.input_tokens ?? 0) > 0 && (message.usage_metadata?.output_tokens ?? 0) > 0, 'no usage came');
}

async function checkPieces(pieces: AsyncIterable<Message>): Promise<void> {
  let [text, tokens] = ['', 0];
  for await (const piece of pieces) {
    text += textOf(piece);
    tokens += piece.usage_metadata?.output_tokens ?? 0;
  }
  ok(text.length > 0, 'no text came');
  ok(tokens > 0, 'no usage came');
}

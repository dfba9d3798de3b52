import { ok } from 'node:assert/strict';
import type { Check, Target } from './check.js';
import type { ImportClient } from './node-clients.js';

const QUESTION = 'What is the capital of France?';
const TOKENS_MAX = 256;

interface StreamedRun extends AsyncIterable<{ readonly type: string }> {
  readonly completed: Promise<void>;
  readonly finalOutput?: unknown;
}
interface AgentsPackage {
  readonly Agent: new (settings: { readonly name: string; readonly instructions: string; readonly model: string; readonly modelSettings: { readonly maxTokens: number } }) => object;
  readonly OpenAIProvider: new (settings: { readonly baseURL: string; readonly apiKey: string; readonly useResponses: boolean }) => object;
  readonly Runner: new (settings: { readonly modelProvider: object; readonly tracingDisabled: boolean }) => {
    run(agent: object, input: string): Promise<{ readonly finalOutput?: unknown }>;
    run(agent: object, input: string, options: { readonly stream: true }): Promise<StreamedRun>;
  };
}

/** OpenAI's agents, over chats and over responses. */
export async function agentsChecks(load: ImportClient): Promise<readonly Check[]> {
  const { Agent, OpenAIProvider, Runner } = (await load('@openai/agents')) as unknown as AgentsPackage;
  const parts = ({ baseUrl, apiKey, model }: Target, useResponses: boolean) => ({
    runner: new Runner({ modelProvider: new OpenAIProvider({ baseURL: baseUrl, apiKey, useResponses }), tracingDisabled: true }),
    agent: new Agent({ name: 'guide', instructions: 'Answer in one sentence.', model, modelSettings: { maxTokens: TOKENS_MAX } }),
  });
  return [false, true].flatMap((useResponses): Check[] => {
    const over = useResponses ? 'responses' : 'chats';
    return [
      { name: `an agent over ${over}`, run: async (target) => {
        const { runner, agent } = parts(target, useResponses);
        await unlessCutShort(async () => checkOutput((await runner.run(agent, QUESTION)).finalOutput));
      } },
      { name: `an agent over streamed ${over}`, run: async (target) => {
        const { runner, agent } = parts(target, useResponses);
        await unlessCutShort(async () => {
          const stream = await runner.run(agent, QUESTION, { stream: true });
          let events = 0;
          for await (const event of stream) if (event.type === 'raw_model_stream_event') events += 1;
          await stream.completed;
          ok(events > 2, `only ${events} events came`);
          checkOutput(stream.finalOutput);
        });
      } },
    ];
  });
}

/** A model with random weights seldom stops by itself, and of an answer that was cut short this client says so. */
async function unlessCutShort(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('terminal state "response.incomplete"')) throw error;
  }
}

function checkOutput(output: unknown): void {
  ok(typeof output === 'string' && output.length > 0, 'no output came');
}

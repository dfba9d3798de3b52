import { isTensorEngine } from '@penstock/contract-events';
import { readTelemetry, type EngineProbe, type EngineTarget, type EngineTelemetry, type ProbeResult } from '@penstock/domain-serving';
import { z } from 'zod';
import { engineRequest, type EngineReply } from './engine-http.js';
import { metricsUrlOf } from '../triton/triton-metrics.js';
import { parsePrometheusText } from './prometheus-text.js';
import { FailureWatch } from './failure-watch.js';
import { probeTensors } from './tensor-probe.js';

const answer = z.looseObject({
  choices: z.array(z.looseObject({ finish_reason: z.string() })).min(1),
  usage: z.looseObject({ completion_tokens: z.int().min(1) }),
});

const vectors = z.looseObject({ data: z.array(z.looseObject({ embedding: z.array(z.number()).min(1) })).min(1) });
/** Adapters name the model that they are on as their parent. */
const modelCards = z.looseObject({ data: z.array(z.looseObject({ id: z.string().min(1).max(500), parent: z.string().nullish() })) });
/** Adapters of one engine; what is listed behind them is not known to anybody. */
const SERVED_ADAPTERS_MAX = 1_024;
/** What llama.cpp says, under status 500, of a model that makes vectors. */
const LACKS_TEXT = /does not support (?:logits computation|completions|chat)/i;

/** Looks at engines over their HTTP surface. */
export class HttpEngineProbe implements EngineProbe {
  private readonly failures = new FailureWatch();

  async generate(target: EngineTarget, timeoutMs: number): Promise<ProbeResult> {
    if (isTensorEngine(target.kind)) return probeTensors(target, timeoutMs);
    const startedMs = performance.now();
    try {
      const common = { model: target.servedModel, max_tokens: 1, temperature: 0 };
      let reply = await engineRequest(`${target.url}/v1/chat/completions`, timeoutMs, { ...common, messages: [{ role: 'user', content: 'Hi' }] });
      // A base model may have no chat template.
      if (reply.status === 400 || reply.status === 404) reply = await engineRequest(`${target.url}/v1/completions`, timeoutMs, { ...common, prompt: 'Hi' });
      const ms = performance.now() - startedMs;
      if (reply.status === 404 || LACKS_TEXT.test(reply.text)) return readVector(await engineRequest(`${target.url}/v1/embeddings`, timeoutMs, { model: target.servedModel, input: 'Hi' }), ms);
      return readAnswer(reply, ms);
    } catch (error) {
      return { kind: 'failed', reason: `the engine did not answer a one-token generation: ${(error as Error).message}` };
    }
  }

  async telemetry(target: EngineTarget, timeoutMs: number): Promise<EngineTelemetry | undefined> {
    try {
      const { status, text } = await engineRequest(target.kind === 'triton' ? metricsUrlOf(target.url) : `${target.url}/metrics`, timeoutMs);
      if (status !== 200) return undefined;
      const isSuspect = target.kind === 'triton' && this.failures.hasNew(target.url, text);
      if (isSuspect && (await probeTensors(target, timeoutMs)).kind === 'failed') return this.failures.keep(target.url);
      const telemetry = readTelemetry(target.kind, parsePrometheusText(text));
      if (telemetry?.adapters === undefined || telemetry.adapters === null) return telemetry;
      return { ...telemetry, adapters: { ...telemetry.adapters, served: await servedAdapters(target.url, timeoutMs) } };
    } catch {
      return undefined;
    }
  }
}

/** What requests may name beside the base model; null when the engine does not say. */
async function servedAdapters(url: string, timeoutMs: number): Promise<string[] | null> {
  const reply = await engineRequest(`${url}/v1/models`, timeoutMs).catch(() => undefined);
  const cards = reply?.status === 200 ? modelCards.safeParse(parseJson(reply.text)) : undefined;
  if (cards?.success !== true) return null;
  return cards.data.data.flatMap(({ id, parent }) => (typeof parent === 'string' ? [id] : [])).slice(0, SERVED_ADAPTERS_MAX);
}

function readAnswer(reply: EngineReply, ms: number): ProbeResult {
  const parsed = reply.status === 200 ? answer.safeParse(parseJson(reply.text)) : undefined;
  if (parsed?.success === true) return { kind: 'answered', ms, completionTokens: parsed.data.usage.completion_tokens };
  return { kind: 'failed', reason: `the engine answered a one-token generation with status ${reply.status} and no finished choice` };
}

/** A model that generates nothing shows by a vector that it works. */
function readVector(reply: EngineReply, ms: number): ProbeResult {
  if (reply.status === 200 && vectors.safeParse(parseJson(reply.text)).success) return { kind: 'answered', ms, completionTokens: 0 };
  return { kind: 'failed', reason: `the engine neither generates a token nor makes a vector: status ${reply.status}` };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

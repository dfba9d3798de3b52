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
      return readAnswer(reply, performance.now() - startedMs);
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
      return readTelemetry(target.kind, parsePrometheusText(text));
    } catch {
      return undefined;
    }
  }
}

function readAnswer(reply: EngineReply, ms: number): ProbeResult {
  const parsed = reply.status === 200 ? answer.safeParse(parseJson(reply.text)) : undefined;
  if (parsed?.success === true) return { kind: 'answered', ms, completionTokens: parsed.data.usage.completion_tokens };
  return { kind: 'failed', reason: `the engine answered a one-token generation with status ${reply.status} and no finished choice` };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { inferResponse, tensorErrorBody } from '@penstock/contract-http';
import { usageRecordsOf } from '@penstock/domain-usage';
import { classifierLogits } from '@penstock/testing-kit';
import type { Check, Target } from '../check.js';

const ROW = [0.5, -1, 2, 0.25, 0, 1, -0.5, 3];
const INFERENCE = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 8], data: ROW }], outputs: [{ name: 'logits' }] };
const TOLERANCE = 1e-4;

/** Requests as a program without a client library writes them. Each of the wrong ones is one that a Triton answers as a failure of its own. */
export const tensorChecks: readonly Check[] = [
  { name: 'JSON in and out computes what the model says', run: computes },
  { name: 'an unknown content type is no matter', run: (target) => computes(target, 'text/plain') },
  { name: 'the record of usage is one inference without tokens', run: isRecorded },
  ...Object.entries(wrongBodies()).map(([name, body]): Check => ({ name: `${name} is a 400`, run: (target) => isRefused(target, body) })),
];

function wrongBodies(): Readonly<Record<string, string>> {
  const [input] = INFERENCE.inputs;
  const withInput = (change: object): string => JSON.stringify({ ...INFERENCE, inputs: [{ ...input, ...change }] });
  return {
    'bad JSON': '{"inputs":[',
    'an empty body': '',
    'a body without inputs': '{}',
    'an id that is a number': JSON.stringify({ ...INFERENCE, id: 7 }),
    'fewer values than the shape has': withInput({ shape: [2, 8] }),
    'text in numbers': withInput({ data: ROW.map(String) }),
    'a negative shape': withInput({ shape: [-1, 8] }),
    'a bogus datatype': withInput({ datatype: 'FP31' }),
    'an input without a shape': withInput({ shape: undefined }),
  };
}

async function post(target: Target, body: string, type = 'application/json'): Promise<Response> {
  return fetch(`${target.baseUrl}/v2/models/${encodeURIComponent(target.model)}/infer`, { method: 'POST', headers: { authorization: `Bearer ${target.apiKey}`, 'content-type': type }, body });
}

async function computes(target: Target, type?: string): Promise<void> {
  const response = await post(target, JSON.stringify(INFERENCE), type);
  strictEqual(response.status, 200);
  const answer = inferResponse.parse(await response.json());
  deepStrictEqual([answer.model_name, answer.outputs.map(({ name }) => name)], [target.model, ['logits']]);
  const data = answer.outputs[0]?.data ?? [];
  for (const [index, logit] of classifierLogits(ROW).entries()) ok(Math.abs(Number(data[index]) - logit) < TOLERANCE, `logit ${index} is ${String(data[index])} instead of ${logit}`);
}

async function isRefused(target: Target, body: string): Promise<void> {
  const response = await post(target, body);
  strictEqual(response.status, 400);
  tensorErrorBody.parse(await response.json());
}

async function isRecorded(target: Target): Promise<void> {
  const response = await post(target, JSON.stringify(INFERENCE));
  const requestId = response.headers.get('x-request-id');
  const deadline = performance.now() + USAGE_WAIT_MS;
  for (;;) {
    const { data } = (await (await fetch(`${target.baseUrl}/admin/v1/events?context=usage&limit=1000`, { headers: { authorization: `Bearer ${target.adminKey ?? ''}` } })).json()) as { data: { type: string; data: unknown }[] };
    const record = data.flatMap(usageRecordsOf).find((usage) => usage.requestId === requestId);
    if (record !== undefined) {
      deepStrictEqual([record.operation, record.status, record.promptTokens, record.completionTokens, record.modelName], ['infer', 'completed', 0, 0, target.model]);
      return;
    }
    ok(performance.now() < deadline, `no record of usage for ${requestId ?? 'the request'}`);
  }
}

const USAGE_WAIT_MS = 10_000;

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureRuntime } from '@penstock/infra-runtimes';
import { classifierLogits, classifierOnnx, identityOnnx, logarithmOnnx, sumOnnx } from '@penstock/testing-kit';

interface EngineUnderTest {
  readonly url: string;
  /** Stops it as an agent does; its exit code. */
  close(): Promise<number | null>;
}

const SET_UP_TIMEOUT_MS = 600_000;
const root = join(import.meta.dirname, '..', '..', '..');
const models = { classifier: classifierOnnx(), text: identityOnnx(8), whole: identityOnnx(7), half: identityOnnx(10), logarithm: logarithmOnnx(), sum: sumOnnx() };
type ModelName = keyof typeof models;

let folder: string;
let runtime: string;
const servers = new Map<ModelName, EngineUnderTest>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-onnx-'));
  runtime = (await ensureRuntime('onnxruntime')).path;
  execFileSync(process.execPath, [join(root, 'tools/build.mjs')], { cwd: root });
  for (const name of Object.keys(models) as ModelName[]) {
    await writeFile(join(folder, `${name}.onnx`), models[name]);
    servers.set(name, await start(name));
  }
}, SET_UP_TIMEOUT_MS);
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()));
  await rm(folder, { recursive: true, force: true });
});

/** A process of its own: the native runtime does not take the typed arrays of a test's realm. */
async function start(name: ModelName, more: readonly string[] = []): Promise<EngineUnderTest> {
  const child = spawn(process.execPath, [join(root, 'apps/engine-onnx/dist/main.js'), '--model-path', join(folder, `${name}.onnx`), '--model-name', `org/${name}`, '--runtime', runtime, ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    url: line.toString().replace('listening on ', '').trim(),
    close: async () => {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}

const urlOf = (name: ModelName, path: string) => `${servers.get(name)?.url ?? ''}${path}`;
const modelPath = (name: ModelName) => `/v2/models/${encodeURIComponent(`org/${name}`)}`;
async function infer(name: ModelName, body: object | Buffer, headers: Record<string, string> = {}): Promise<{ status: number; text: string; bytes: Buffer; headLength: number }> {
  const response = await fetch(urlOf(name, `${modelPath(name)}/infer`), { method: 'POST', body: (Buffer.isBuffer(body) ? body : JSON.stringify(body)) as NonNullable<RequestInit['body']>, headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, text: bytes.toString(), bytes, headLength: Number(response.headers.get('inference-header-content-length')) };
}

describe('the ONNX engine', () => {
  test('says what it serves', async () => {
    expect(await (await fetch(urlOf('classifier', '/v2'))).json()).toMatchObject({ name: 'penstock-onnx', extensions: ['binary_tensor_data', 'parameters'] });
    for (const path of ['/health', '/v2/health/live', '/v2/health/ready', `${modelPath('classifier')}/ready`, `${modelPath('classifier')}/versions/1/ready`]) expect((await fetch(urlOf('classifier', path))).status).toBe(200);
    expect(await (await fetch(urlOf('classifier', modelPath('classifier')))).json()).toEqual({
      name: 'org/classifier', versions: ['1'], platform: 'onnxruntime', inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 8] }], outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, 3] }, { name: 'probs', datatype: 'FP32', shape: [-1, 3] }],
    });
    for (const path of ['/v2/models/other', `${modelPath('classifier')}/versions/2`, '/v2/models', '/']) expect((await fetch(urlOf('classifier', path))).status).toBe(404);
    expect((await fetch(urlOf('classifier', '/v2'), { method: 'DELETE' })).status).toBe(405);
  });

  test('computes what the model says, for one row and for many', async () => {
    const rows = [[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [1, -1, 2, -2, 0, 0.25, 3, -3]];
    const { text } = await infer('classifier', { id: 'r1', inputs: [{ name: 'x', datatype: 'FP32', shape: [2, 8], data: rows }] });
    const answer = JSON.parse(text) as { id: string; model_name: string; outputs: { name: string; shape: number[]; data: number[] }[] };
    expect(answer).toMatchObject({ id: 'r1', model_name: 'org/classifier', model_version: '1', outputs: [{ name: 'logits', shape: [2, 3] }, { name: 'probs', shape: [2, 3] }] });
    rows.flatMap(classifierLogits).forEach((logit, index) => expect(answer.outputs[0]?.data[index]).toBeCloseTo(logit, 4));
    expect(answer.outputs[1]?.data.slice(0, 3).reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
  });

  test('takes and gives binary, and mixes both as asked', async () => {
    const head = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 8], parameters: { binary_data_size: 32 } }], outputs: [{ name: 'probs' }, { name: 'logits', parameters: { binary_data: true } }] });
    const body = Buffer.concat([Buffer.from(head), Buffer.from(new Float32Array(8).fill(0.5).buffer)]);
    const { bytes, headLength } = await infer('classifier', body, { 'Inference-Header-Content-Length': String(head.length) });
    const answer = JSON.parse(bytes.subarray(0, headLength).toString()) as { outputs: { name: string; data?: number[]; parameters?: object }[] };
    expect(answer.outputs.map(({ name, data, parameters }) => [name, data?.length, parameters])).toEqual([['probs', 3, undefined], ['logits', undefined, { binary_data_size: 12 }]]);
    const values = new Float32Array(Uint8Array.from(bytes.subarray(headLength)).buffer);
    classifierLogits(Array.from({ length: 8 }, () => 0.5)).forEach((logit, index) => expect(values[index]).toBeCloseTo(logit, 4));
  });

  test('carries text, 64 bits and halves as they are, and what is no number as a word', async () => {
    expect((await infer('text', { inputs: [{ name: 'x', datatype: 'BYTES', shape: [2], data: ['grüße', ''] }] })).text).toContain('"data":["grüße",""]');
    expect((await infer('whole', Buffer.from('{"inputs":[{"name":"x","datatype":"INT64","shape":[1],"data":[9007199254740993]}]}'))).text).toContain('"data":[9007199254740993]');
    const head = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP16', shape: [2], parameters: { binary_data_size: 4 } }], parameters: { binary_data_output: true } });
    const half = await infer('half', Buffer.concat([Buffer.from(head), Buffer.from([0x00, 0x3c, 0x01, 0x7c])]), { 'Inference-Header-Content-Length': String(head.length) });
    expect(half.bytes.subarray(half.headLength)).toEqual(Buffer.from([0x00, 0x3c, 0x01, 0x7c]));
    const { outputs } = JSON.parse((await infer('logarithm', { inputs: [{ name: 'x', datatype: 'FP32', shape: [3], data: [0, -1, 1] }] })).text) as { outputs: { data: unknown[] }[] };
    expect(outputs[0]?.data).toEqual(['-Infinity', 'NaN', 0]);
  });

  test('tells the faults of a caller from those of the model, counts both, and goes on', async () => {
    expect((await infer('classifier', { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 7], data: [1, 2, 3, 4, 5, 6, 7] }] })).status).toBe(400);
    expect((await infer('classifier', Buffer.from('{'))).status).toBe(400);
    expect((await infer('classifier', { inputs: [] })).status).toBe(400);
    expect((await infer('text', Buffer.from('{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]}\u0001\u0000\u0000\u0000\xff', 'latin1'), { 'Inference-Header-Content-Length': '92' })).status).toBe(400);
    const broken = await infer('sum', { inputs: [{ name: 'x', datatype: 'FP32', shape: [2], data: [1, 2] }, { name: 'z', datatype: 'FP32', shape: [3], data: [1, 2, 3] }] });
    expect([broken.status, broken.text]).toEqual([500, expect.stringContaining('onnx runtime error')]);
    expect((await infer('sum', { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }, { name: 'z', datatype: 'FP32', shape: [1], data: [2] }] })).text).toContain('"data":[3]');
    const metrics = await (await fetch(urlOf('sum', '/metrics'))).text();
    expect(metrics).toContain('onnx_requests_total{outcome="failed"} 1');
    expect(metrics).toContain('onnx_requests_total{outcome="completed"} 1');
  });

  test('refuses with 503 what its queue has no room for, and counts it', async () => {
    const server = await start('classifier', ['--slots', '1', '--queue-max', '1']);
    try {
      const body = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [2_000, 8], data: Array.from({ length: 16_000 }, () => 0.5) }], outputs: [{ name: 'probs', parameters: { binary_data: true } }] });
      const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await fetch(`${server.url}${modelPath('classifier')}/infer`, { method: 'POST', body })).status));
      const refused = statuses.filter((status) => status === 503).length;
      expect(statuses.filter((status) => status === 200)).toHaveLength(40 - refused);
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      expect(metrics).toContain('onnx_requests_running 0');
      if (refused > 0) expect(metrics).toContain(`onnx_requests_total{outcome="refused"} ${refused}`);
    } finally {
      expect(await server.close()).toBe(0);
    }
  });
});

import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EngineDriver, EngineProcess, EngineStartSpec } from '@penstock/domain-serving';
import { ensureRuntime } from '@penstock/infra-runtimes';
import { classifierLogits, classifierOnnx, eventually, identityOnnx } from '@penstock/testing-kit';
import { HttpEngineProbe } from '../http/http-engine-probe.js';
import { OnnxDriver } from '../onnx/onnx-driver.js';
import { TritonDriver } from './triton-driver.js';

/** The first run on a machine downloads both engines. */
const SET_UP_TIMEOUT_MS = 600_000;
const STOP_GRACE_MS = 10_000;

const root = join(import.meta.dirname, '..', '..', '..', '..', '..');
const drivers: Readonly<Record<'onnx' | 'triton', EngineDriver>> = {
  onnx: new OnnxDriver({ scriptPath: join(root, 'apps/engine-onnx/dist/main.js'), locate: () => ensureRuntime('onnxruntime'), version: '1.30.0' }),
  triton: new TritonDriver({ locate: () => ensureRuntime('triton'), version: '2.51.0' }),
};
const probe = new HttpEngineProbe();
const row = [0.5, -1, 2, 0.25, 0, 1, -0.5, 3];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-tensors-'));
  await writeFile(join(folder, 'classifier "1".onnx'), classifierOnnx());
  await writeFile(join(folder, 'text.onnx'), identityOnnx(8));
  await writeFile(join(folder, 'broken.onnx'), 'this is no model');
  execFileSync(process.execPath, [join(root, 'tools/build.mjs')], { cwd: root });
}, SET_UP_TIMEOUT_MS);
afterAll(() => rm(folder, { recursive: true, force: true }));

let replicas = 0;
function specOf(file: string, overrides: Partial<EngineStartSpec> = {}): EngineStartSpec {
  replicas += 1;
  const stateDir = join(folder, `replica-${replicas}`);
  return {
    replicaId: `rep_${replicas}`, modelName: 'org/classifier', modelPath: join(folder, file), slots: 2, contextTokens: 1, options: {}, device: null, attachedUrl: null,
    logFile: join(stateDir, 'engine.log'), stateDir, ...overrides,
  };
}

async function infer(engine: EngineProcess, body: object): Promise<{ status: number; body: { outputs?: { name: string; data: (number | string)[] }[]; error?: string } }> {
  const response = await fetch(`${engine.url}/v2/models/${encodeURIComponent(engine.servedModel)}/infer`, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as { outputs?: { name: string; data: number[] }[]; error?: string } };
}

describe.each(['onnx', 'triton'] as const)('%s', (kind) => {
  const driver = drivers[kind];
  let engine: EngineProcess;
  const target = () => ({ kind, url: engine.url, servedModel: engine.servedModel });

  beforeAll(async () => {
    engine = await driver.start(specOf('classifier "1".onnx', kind === 'triton' ? { options: { max_batch_size: 8, max_queue_delay_us: 2_000 } } : {}));
  }, SET_UP_TIMEOUT_MS);
  afterAll(() => engine.kill());

  test('loads the file, knows its tensors and answers a real inference', async () => {
    const described = (await (await fetch(`${engine.url}/v2/models/${encodeURIComponent(engine.servedModel)}`)).json()) as object;
    expect(described).toMatchObject({ inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 8] }], outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, 3] }, { name: 'probs', datatype: 'FP32', shape: [-1, 3] }] });
    expect(await probe.generate(target(), 10_000)).toMatchObject({ kind: 'answered' });
    const { status, body } = await infer(engine, { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 8], data: row }], outputs: [{ name: 'logits' }] });
    expect(status).toBe(200);
    expect(body.outputs?.[0]?.name).toBe('logits');
    classifierLogits(row).forEach((logit, index) => expect(body.outputs?.[0]?.data[index]).toBeCloseTo(logit, 4));
  });

  test('answers many at once, each with its own values', async () => {
    const rows = Array.from({ length: 24 }, (_, index) => row.map((value) => value + index / 10));
    const answers = await Promise.all(rows.map((values) => infer(engine, { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 8], data: values }], outputs: [{ name: 'logits' }] })));
    answers.forEach(({ body }, index) => expect(body.outputs?.[0]?.data[0]).toBeCloseTo(classifierLogits(rows[index] ?? [])[0] ?? NaN, 4));
  });

  test('is attached by its URL, and then left running', async () => {
    const attached = await drivers.triton.start(specOf('x', { modelName: engine.servedModel, modelPath: null, attachedUrl: `${engine.url}/v2/` }));
    expect([attached.url, attached.servedModel, attached.pid]).toEqual([engine.url, engine.servedModel, null]);
    await attached.stop(10);
    expect((await drivers.triton.adopt(attached.record))?.servedModel).toBe(engine.servedModel);
    const other = drivers.triton.start(specOf('x', { modelName: 'other', modelPath: null, attachedUrl: engine.url }));
    // Triton lists its models; where a server has one, that is the one.
    await (kind === 'triton' ? expect(other).resolves.toMatchObject({ servedModel: engine.servedModel }) : expect(other).rejects.toMatchObject({ code: 'unreachable' }));
  });

  test('reports its load', async () => {
    expect(await eventually(() => probe.telemetry(target(), 5_000), (telemetry) => telemetry !== undefined)).toEqual({ running: 0, waiting: 0, kvCacheUsage: null, kvTokens: null, pace: null, adapters: null, promptTokensTotal: 0, completionTokensTotal: 0 });
  });

  test('is taken over by the next agent, and stopped by it', async () => {
    const first = await driver.start(specOf('text.onnx'));
    const adopted = await driver.adopt(first.record);
    expect(adopted?.pid).toBe(first.pid);
    const { body } = await infer(first, { inputs: [{ name: 'x', datatype: 'BYTES', shape: [2], data: ['grüße', ''] }] });
    expect(body.outputs?.[0]?.data).toEqual(['grüße', '']);
    await adopted?.stop(STOP_GRACE_MS);
    // Triton says 1 when a connection was still open, idle as it was.
    expect((await first.exited).reason).toMatch(/exited with code [01]/);
  });

  test('a file that is no model is the reason it gives', async () => {
    await expect(driver.start(specOf('broken.onnx'))).rejects.toMatchObject({ code: 'engine_exited', message: expect.stringMatching(/protobuf|onnx/i) as unknown as string });
  });
});

describe('a Triton whose model died', () => {
  test('still says that it is ready, and is found out by an inference', async () => {
    const driver = drivers.triton;
    const engine = await driver.start(specOf('classifier "1".onnx'));
    try {
      const target = { kind: 'triton' as const, url: engine.url, servedModel: engine.servedModel };
      expect(await eventually(() => probe.telemetry(target, 5_000), (telemetry) => telemetry !== undefined)).toBeDefined();
      const children = (await readFile(`/proc/${engine.pid}/task/${engine.pid}/children`, 'utf8')).trim().split(' ').map(Number);
      for (const child of children) process.kill(child, 'SIGKILL');
      // The next request meets the dead process, and Triton counts a failure of the backend.
      await eventually(() => infer(engine, { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 8], data: row }] }), ({ status }) => status === 500);
      expect((await fetch(`${engine.url}/v2/models/${engine.servedModel}/ready`)).status).toBe(200);
      await eventually(() => probe.telemetry(target, 5_000), (telemetry) => telemetry === undefined);
      expect(await probe.telemetry(target, 5_000)).toBeUndefined();
      expect(await probe.generate(target, 5_000)).toMatchObject({ kind: 'failed' });
    } finally {
      await engine.kill();
    }
  });
});

describe('attaching', () => {
  test('nothing at the URL is unreachable, with the next step', async () => {
    await expect(drivers.triton.start(specOf('x', { modelPath: null, attachedUrl: 'http://127.0.0.1:1' }))).rejects.toMatchObject({ code: 'unreachable', message: expect.stringContaining('attach it by its right URL') as unknown as string });
  });
});

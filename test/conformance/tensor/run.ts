import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startStandalone, type Standalone } from '@penstock/infra-composition';
import { TritonDriver } from '@penstock/infra-engines';
import { defaultCacheDir, ensureRuntime } from '@penstock/infra-runtimes';
import { classifierOnnx } from '@penstock/testing-kit';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { until } from '../../platform/eventually.js';
import { runChecks, type CheckResult, type Target } from '../check.js';
import { tensorChecks } from './tensor-checks.js';

const execute = promisify(execFile);
const CLIENT = 'tritonclient==2.73.0';
const INSTALL_TIMEOUT_MS = 300_000;
const CHECKS_TIMEOUT_MS = 300_000;
/** Both engines may be installed meanwhile. */
const READY_WAIT_MS = 600_000;
const STOP_GRACE_MS = 10_000;
const OUTPUT_BYTES_MAX = 16 * 1_024 * 1_024;
/** Other users must be able to walk through a folder of root's, since PostgreSQL runs as one of them. */
const WALKABLE = 0o711;

/** NVIDIA's client and plain requests against the tensor routes: on ONNX Runtime, on a Triton that the platform starts, and on a real one that is attached. */
export const run: Run = async ({ say }) => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-conformance-'));
  await chmod(folder, WALKABLE);
  const artifact = join(folder, 'classifier.onnx');
  await writeFile(artifact, classifierOnnx());
  const driver = new TritonDriver({ locate: () => ensureRuntime('triton'), version: undefined });
  const direct = await driver.start({
    replicaId: 'direct', modelName: 'classifier', modelPath: artifact, slots: 4, contextTokens: 1, options: {}, device: null, attachedUrl: null, logFile: join(folder, 'triton.log'), stateDir: join(folder, 'direct'),
  });
  const platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, onStep: (name, ms) => say(`${name}: ${Math.round(ms)} ms`) });
  try {
    const python = await installClient(say);
    const targets = await deployTargets(platform, { artifact: `file://${artifact}`, attached: `attach+${direct.url}` });
    const results: CheckResult[] = [];
    for (const target of targets) {
      say(`checking ${target.model}`);
      results.push(...(await runChecks('plain requests', tensorChecks, target)));
      results.push(...(await runClientChecks(python, target, { address: new URL(direct.url).host, model: direct.servedModel })));
    }
    for (const result of results.filter((candidate) => !candidate.ok)) say(`FAILED ${result.client} on ${result.engine}: ${result.check}: ${result.detail ?? ''}`);
    const failed = results.filter((result) => !result.ok).length;
    const clients = [...new Set(results.map((result) => result.client))];
    const engines = [...new Set(results.map((result) => result.engine))];
    return { figures: { passed: results.length - failed, failed, clients, engines }, pass: failed === 0 && results.length > 0, detail: { checks: results } };
  } finally {
    await platform.close();
    await direct.stop(STOP_GRACE_MS);
    await rm(folder, { recursive: true, force: true });
  }
};

async function deployTargets(platform: Standalone, { artifact, attached }: { readonly artifact: string; readonly attached: string }): Promise<readonly Target[]> {
  const headers = { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' };
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${platform.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path}: HTTP ${response.status}: ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  const models = [
    { model: 'tensor-onnx', engine: 'onnx', body: { model_artifact: artifact, framework: 'onnx' } },
    { model: 'tensor-triton', engine: 'triton', body: { model_artifact: artifact, framework: 'triton', engine_options: { max_batch_size: 8, max_queue_delay_us: 1_000 } } },
    { model: 'tensor-attached', engine: 'triton, attached', body: { model_artifact: attached, framework: 'triton' } },
  ];
  const { key } = await post('/admin/v1/keys', { name: 'conformance' });
  for (const { model, body } of models) {
    await post('/v1/models/deploy', { model_name: model, ...body });
    await until(`${model} is ready`, READY_WAIT_MS, async () => ((await fetch(`${platform.url}/v2/models/${model}/ready`, { headers })).ok ? true : undefined));
  }
  return models.map(({ model, engine }) => ({ baseUrl: platform.url, apiKey: String(key), adminKey: platform.adminKey, model, engine }));
}

/** A virtual environment in the machine's cache with NVIDIA's client; made once for each pinned version. */
async function installClient(say: (text: string) => void): Promise<string> {
  const folder = join(defaultCacheDir(process.env), 'conformance', CLIENT.replace('==', '-'));
  const python = join(folder, 'bin', 'python');
  if (existsSync(join(folder, 'installed'))) return python;
  say(`installing ${CLIENT}, once for this machine`);
  await mkdir(folder, { recursive: true });
  await execute('python3', ['-m', 'venv', '--clear', folder], { timeout: INSTALL_TIMEOUT_MS });
  await execute(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', CLIENT.replace('==', '[http]==')], { timeout: INSTALL_TIMEOUT_MS });
  await mkdir(join(folder, 'installed'));
  return python;
}

async function runClientChecks(python: string, target: Target, direct: { readonly address: string; readonly model: string }): Promise<CheckResult[]> {
  const script = join(repositoryRoot(import.meta.dirname), 'test/conformance/tensor/tritonclient_checks.py');
  const { stdout } = await execute(python, [script, new URL(target.baseUrl).host, target.apiKey, target.model, direct.address, direct.model], { timeout: CHECKS_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX });
  return stdout.trim().split('\n').map((line) => {
    const { check, ok, detail } = JSON.parse(line) as { check: string; ok: boolean; detail?: string };
    return { client: 'tritonclient (Python) 2.73', engine: target.engine, check, ok, detail };
  });
}

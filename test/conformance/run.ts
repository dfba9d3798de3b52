import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deployFirstModel, deploySecondModel, operatorEnvironment, type Standalone } from '@penstock/infra-composition';
import OpenAI6 from 'openai';
import OpenAI7 from 'openai7';
import { repositoryRoot } from '../contracts/files.js';
import type { Report, Run } from '../harness.js';
import { runChecks, type CheckResult, type Target } from './check.js';
import { agentsChecks } from './agents-checks.js';
import { langChainChecks } from './langchain-checks.js';
import { createKey, deployModel } from './deploy-model.js';
import { installNodeClients } from './node-clients.js';
import { openAiNodeChecks, type OpenAiPackage } from './openai-node-checks.js';
import { pipInstall, pythonTools } from './python-tools.js';
import { surfaceChecks } from './surface-checks.js';
import { vercelAiChecks } from './vercel-ai-checks.js';
import { withPlatform } from './with-platform.js';

const execute = promisify(execFile);
const PYTHON_PACKAGE = 'openai==3.57.0';
const CHECKS_TIMEOUT_MS = 300_000;
const OUTPUT_BYTES_MAX = 16 * 1_024 * 1_024;

/** The official clients against the whole platform, on a real engine and on the simulated one. */
export const run: Run = ({ say }) => withPlatform(say, async (platform) => checkTargets(await deployTargets(platform), say));

/** Every client against every target. */
export async function checkTargets(targets: readonly Target[], say: (text: string) => void): Promise<Report> {
  const python = await installPythonClient(say);
  const load = await installNodeClients(say);
  // Both majors have what the checks use; their types differ in parts that they do not.
  const openAi7 = { OpenAI: OpenAI7 as unknown as OpenAiPackage['OpenAI'] };
  const suites = [
    ['openai (npm) 6', openAiNodeChecks({ OpenAI: OpenAI6 })],
    ['openai (npm) 6, the whole surface', surfaceChecks({ OpenAI: OpenAI6 })],
    ['openai (npm) 7', openAiNodeChecks(openAi7)],
    ['openai (npm) 7, the whole surface', surfaceChecks(openAi7)],
    ['Vercel AI SDK 7', await vercelAiChecks(load)],
    ['LangChain JS 1', await langChainChecks(load)],
    ['OpenAI Agents JS', await agentsChecks(load)],
  ] as const;
  const results: CheckResult[] = [];
  for (const target of targets) {
    say(`checking ${target.model} on ${target.engine}`);
    for (const [client, checks] of suites) results.push(...(await runChecks(client, checks, target)));
    results.push(...(await runPythonChecks(python, target)));
  }
  return reportOf(results, say);
}

/** Failures in words, and the figures. */
export function reportOf(results: readonly CheckResult[], say: (text: string) => void): Report {
  for (const result of results.filter((candidate) => !candidate.ok)) say(`FAILED ${result.client} on ${result.engine}: ${result.check}: ${result.detail ?? ''}`);
  const failed = results.filter((result) => !result.ok).length;
  const clients = [...new Set(results.map((result) => result.client))];
  const engines = [...new Set(results.map((result) => result.engine))];
  return { figures: { passed: results.length - failed, failed, clients, engines }, pass: failed === 0 && results.length > 0, detail: { checks: results } };
}

/** The default model and the embedding model in llama.cpp, and a simulated one. */
export async function deployTargets(platform: Standalone): Promise<readonly Target[]> {
  const model = await deployFirstModel({ environment: operatorEnvironment(platform.settings), randomModelPath: platform.instance.path('models', 'random.gguf') });
  const embedding = await deploySecondModel({ environment: operatorEnvironment(platform.settings) });
  const simulated = 'sim-chat';
  await deployModel(platform, { model_name: simulated, model_artifact: 'sim://', framework: 'engine-sim', serving: { slots_per_replica: 8, context_tokens: 4_096 } });
  const shared = { baseUrl: `${platform.url}/v1`, apiKey: await createKey(platform) };
  return [{ ...shared, model: model.name, engine: 'llama.cpp', embeddingModel: embedding.name }, { ...shared, model: simulated, engine: 'engine-sim' }];
}

/** A Python with the official client. */
export async function installPythonClient(say: (text: string) => void): Promise<string> {
  const { python } = await pythonTools(PYTHON_PACKAGE.replace('==', '-'), say, (tools) => pipInstall(tools, [PYTHON_PACKAGE]));
  return python;
}

export async function runPythonChecks(python: string, target: Target): Promise<CheckResult[]> {
  const script = join(repositoryRoot(import.meta.dirname), 'test/conformance/openai_python_checks.py');
  const { stdout } = await execute(python, [script, target.baseUrl, target.apiKey, target.model], { timeout: CHECKS_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX });
  return stdout.trim().split('\n').map((line) => {
    const { check, ok, detail } = JSON.parse(line) as { check: string; ok: boolean; detail?: string };
    return { client: 'openai (Python) 3', engine: target.engine, check, ok, detail };
  });
}

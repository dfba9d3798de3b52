import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Run } from '../../harness.js';
import { repositoryRoot } from '../../contracts/files.js';
import type { CheckResult, Target } from '../check.js';
import { createKey, deployModel } from '../deploy-model.js';
import { pipInstall, pythonTools, type PythonTools } from '../python-tools.js';
import { reportOf } from '../run.js';
import { withPlatform } from '../with-platform.js';

const MODEL = 'sim-load';
const REQUESTS = 40;
const CONCURRENCY = 4;
const RUN_TIMEOUT_MS = 300_000;

interface LoadTool {
  readonly name: string;
  readonly package: string;
  /** Runs the tool and gives the requests that it counts as good. */
  run(tools: PythonTools, target: Target, tokenizer: string, output: string): Promise<number>;
}

/** NVIDIA's load tool. */
const aiperf: LoadTool = {
  name: 'AIPerf', package: 'aiperf==0.13.0',
  async run({ folder, run }, { baseUrl, apiKey, model }, tokenizer, output) {
    await run([
      join(folder, 'bin', 'aiperf'), 'profile', '-m', model, '-u', baseUrl.replace(/\/v1$/, ''), '--api-key', apiKey, '--endpoint-type', 'chat', '--streaming', '--tokenizer', tokenizer,
      '--synthetic-input-tokens-mean', '64', '--output-tokens-mean', '16', '--use-server-token-count', '--concurrency', String(CONCURRENCY), '--request-count', String(REQUESTS),
      '--random-seed', '1', '--workers-max', '2', '--ui', 'simple', '--artifact-dir', output,
    ], { timeoutMs: RUN_TIMEOUT_MS });
    const file = (await readdir(output, { recursive: true })).find((name) => name.endsWith('profile_export_aiperf.json'));
    const report = JSON.parse(await readFile(join(output, file ?? ''), 'utf8')) as { request_count?: { avg?: number } };
    return report.request_count?.avg ?? 0;
  },
};

/** vLLM's load tool. */
const guidellm: LoadTool = {
  name: 'GuideLLM', package: 'guidellm==0.8.1',
  async run({ folder, run }, { baseUrl, apiKey, model }, tokenizer, output) {
    const file = join(output, 'guidellm.json');
    await run([
      join(folder, 'bin', 'guidellm'), 'run', '--backend', `kind=openai_http,target=${baseUrl.replace(/\/v1$/, '')},model=${model},api_key=${apiKey},request_format=/v1/chat/completions`,
      '--tokenizer', `kind=huggingface_auto,model=${tokenizer}`, '--data', 'kind=synthetic_text,prompt_tokens=64,output_tokens=16', '--profile', `kind=concurrent,streams=${CONCURRENCY}`,
      '--constraint', `kind=max_requests,count=${REQUESTS}`, '--output', `kind=json,path=${file}`, '--disable-progress',
    ], { timeoutMs: RUN_TIMEOUT_MS, env: { ...process.env, HF_HUB_OFFLINE: '1', TRANSFORMERS_OFFLINE: '1', HF_DATASETS_OFFLINE: '1' } });
    const report = JSON.parse(await readFile(file, 'utf8')) as { benchmarks: { metrics: { request_totals: { successful: number } } }[] };
    return report.benchmarks[0]?.metrics.request_totals.successful ?? 0;
  },
};

const tools: Readonly<Record<string, LoadTool>> = { aiperf, guidellm };

/**
 * The load tools that users bring, against the platform: `conformance -- load-tools [aiperf] [guidellm]`. AIPerf takes 1.2 GB in the
 * machine's cache, GuideLLM 6 GB; only AIPerf runs when nothing is named.
 */
export const run: Run = ({ args, say }) => withPlatform(say, async (platform, folder) => {
  const named = args.flatMap((word) => tools[word] ?? []);
  await deployModel(platform, { model_name: MODEL, model_artifact: 'sim://', framework: 'engine-sim', serving: { slots_per_replica: CONCURRENCY * 2, context_tokens: 4_096 } });
  const target: Target = { baseUrl: `${platform.url}/v1`, apiKey: await createKey(platform), model: MODEL, engine: 'engine-sim' };
  const script = join(repositoryRoot(import.meta.dirname), 'test/conformance/load-tools/make_tokenizer.py');
  const results: CheckResult[] = [];
  for (const tool of named.length > 0 ? named : [aiperf]) {
    const installed = await pythonTools(tool.package.replace('==', '-'), say, (fresh) => pipInstall(fresh, [tool.package]));
    const tokenizer = join(folder, `${tool.name}-tokenizer`);
    const check = `${REQUESTS} streamed chats, ${CONCURRENCY} at once`;
    try {
      await installed.run([script, tokenizer]);
      const good = await tool.run(installed, target, tokenizer, join(folder, tool.name));
      results.push({ client: tool.name, engine: target.engine, check, ok: good === REQUESTS, detail: `${good} of ${REQUESTS} went well` });
    } catch (error) {
      results.push({ client: tool.name, engine: target.engine, check, ok: false, detail: error instanceof Error ? error.message.slice(-2_000) : String(error) });
    }
  }
  return reportOf(results, say);
});

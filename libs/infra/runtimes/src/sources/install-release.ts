import { createWriteStream } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { verifySha256 } from '../install/file-digest.js';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed } from '../install/install-context.js';
import type { RuntimeSource } from '../manifest.js';
import { runTool } from '../process/run-tool.js';

type ReleaseSource = Extract<RuntimeSource, { kind: 'release' }>;

const CHECKSUMS_BYTES_MAX = 1_000_000;
const ARCHIVE_BYTES_MAX = 500_000_000;
const CONNECT_TIMEOUT_MS = 30_000;

/** Downloads an archive of the project's own release and checks it against the checksums published with it. */
export async function installRelease(source: ReleaseSource, context: InstallContext): Promise<Installed> {
  const name = basename(new URL(source.archiveUrl).pathname);
  const checksums = await (await fetchOk(source.checksumsUrl, CONNECT_TIMEOUT_MS)).text();
  if (checksums.length > CHECKSUMS_BYTES_MAX) throw new Error(`the list of checksums at ${source.checksumsUrl} is too long`);
  const line = checksums.split('\n').find((text) => text.trim().endsWith(name));
  const sha256 = line?.trim().split(/\s+/)[0];
  if (sha256 === undefined) throw new Error(`${source.checksumsUrl} has no checksum of ${name}`);
  const archive = join(context.scratch, name);
  await download(source.archiveUrl, archive, context);
  await verifySha256(archive, sha256.toLowerCase(), name);
  context.report('unpacking', 0, undefined);
  await runTool('tar', ['-xzf', archive, '-C', context.folder, '--no-same-owner'], { timeoutMs: INSTALL_TIMEOUT_MS, env: context.env });
  await chmod(join(context.folder, source.entry), 0o755);
  return { entry: source.entry, version: source.version };
}

async function download(url: string, target: string, context: InstallContext): Promise<void> {
  const response = await fetchOk(url, INSTALL_TIMEOUT_MS);
  const totalBytes = Number(response.headers.get('content-length') ?? 0) || undefined;
  if (response.body === null) throw new Error(`${url} answered without a body`);
  let bytes = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      context.report('downloading', bytes, totalBytes);
      done(bytes > ARCHIVE_BYTES_MAX ? new Error(`${url} is larger than ${ARCHIVE_BYTES_MAX} bytes`) : null, chunk);
    },
  });
  await pipeline(Readable.fromWeb(response.body), counter, createWriteStream(target));
}

async function fetchOk(url: string, timeoutMs: number): Promise<Response> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'follow' }).catch((error: Error) => {
    throw new Error(`${url} is not reachable (${(error.cause as Error | undefined)?.message ?? error.message})`);
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response;
}

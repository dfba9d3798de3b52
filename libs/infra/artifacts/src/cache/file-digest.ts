import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';

const READ_BYTES = 4 * 1_048_576;

/** Feeds the first `length` bytes of a file (all when left out) to a hash. */
export async function hashInto(hash: Hash, path: string, length?: number, signal?: AbortSignal): Promise<void> {
  if (length === 0) return;
  const stream = createReadStream(path, { highWaterMark: READ_BYTES, ...(length === undefined ? {} : { end: length - 1 }), ...(signal === undefined ? {} : { signal }) });
  for await (const chunk of stream) hash.update(chunk as Buffer);
}

/** `sha256:…` of a whole file. */
export async function digestOf(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await hashInto(hash, path, undefined, signal);
  return `sha256:${hash.digest('hex')}`;
}

import { createHash } from 'node:crypto';
import type { ObjectStore } from '@penstock/domain-batching';

/** What the joined bytes came to. */
export interface JoinedParts {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
  /** Hexadecimal. */
  readonly md5: string;
}

/** Writes objects one after the other into one, without holding more than a piece of them. Undefined when one of them is gone. */
export async function joinParts(objects: ObjectStore, keys: readonly string[], target: string): Promise<JoinedParts | undefined> {
  const sha256 = createHash('sha256');
  const md5 = createHash('md5');
  let isWhole = true;
  async function* joined(): AsyncGenerator<Uint8Array> {
    for (const key of keys) {
      const reading = await objects.get(key);
      if (reading === undefined) {
        isWhole = false;
        return;
      }
      for await (const piece of reading.body) {
        sha256.update(piece);
        md5.update(piece);
        yield piece;
      }
    }
  }
  await objects.put(target, joined());
  if (isWhole) return { digest: `sha256:${sha256.digest('hex')}`, md5: md5.digest('hex') };
  await objects.delete(target);
  return undefined;
}

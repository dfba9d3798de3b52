import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Where things lie inside the cache folder. */
export class CacheLayout {
  constructor(readonly root: string) {}

  get blobs(): string {
    return join(this.root, 'blobs', 'sha256');
  }

  get partials(): string {
    return join(this.root, 'partial');
  }

  get checks(): string {
    return join(this.root, 'checks');
  }

  get holds(): string {
    return join(this.root, 'holds');
  }

  get sets(): string {
    return join(this.root, 'sets');
  }

  get scratch(): string {
    return join(this.root, 'scratch');
  }

  blob(hex: string): string {
    return join(this.blobs, hex);
  }

  partial(key: string): string {
    return join(this.partials, key);
  }

  /** Remembers that a file had its digest when it was last read whole. */
  check(path: string): string {
    return join(this.checks, `${keyOf(path)}.json`);
  }

  /** All folders that must exist. */
  folders(): readonly string[] {
    return [this.blobs, this.partials, this.checks, this.holds, this.sets, this.scratch];
  }
}

/** A file name for something that has no digest yet. */
export function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const DIGEST_PATTERN = /^sha256:([0-9a-f]{64})$/;

/** The 64 hexadecimal digits of `sha256:…`. Throws on anything else: the value becomes a file name. */
export function hexOf(digest: string): string {
  const hex = DIGEST_PATTERN.exec(digest)?.[1];
  if (hex === undefined) throw new Error(`${digest.slice(0, 80)} is not a sha256 digest`);
  return hex;
}

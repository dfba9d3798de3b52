import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** sha256 of a file as lower-case hexadecimal digits. */
export async function fileSha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Throws when the file is not the one that was pinned. */
export async function verifySha256(path: string, pinned: string, what: string): Promise<void> {
  const found = await fileSha256(path);
  if (found !== pinned) {
    throw new Error(`${what} has sha256 ${found}, the pinned one is ${pinned}; it was changed on the way or replaced`);
  }
}

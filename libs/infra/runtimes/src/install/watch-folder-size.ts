import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const POLL_MS = 300;
/** A folder with more files than this is no longer measured, so that measuring stays cheap. */
const FILES_MAX = 20_000;

/** Calls `onBytes` with the size of a growing folder until the returned function is called: package managers report no bytes themselves. */
export function watchFolderSize(folder: string, onBytes: (bytes: number) => void): () => void {
  let measuring = false;
  const timer = setInterval(() => {
    if (measuring) return;
    measuring = true;
    void folderBytes(folder).then((bytes) => {
      measuring = false;
      onBytes(bytes);
    });
  }, POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Bytes of all files under `folder`; files that vanish meanwhile count nothing. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries.slice(0, FILES_MAX)) {
    if (!entry.isFile()) continue;
    bytes += (await lstat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}

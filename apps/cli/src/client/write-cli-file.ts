import { rename, writeFile } from 'node:fs/promises';
import type { z } from 'zod';
import type { cliFile } from './find-target.js';

const OWNER_ONLY = 0o600;

/** Leaves the address and the keys for the other commands, in a file that only its owner reads. */
export async function writeCliFile(path: string, content: { [Name in keyof z.infer<typeof cliFile>]: z.infer<typeof cliFile>[Name] | undefined }): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify(content, undefined, 2)}\n`, { mode: OWNER_ONLY });
  await rename(temporary, path);
}

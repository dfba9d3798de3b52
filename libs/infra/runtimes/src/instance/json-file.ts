import { open, readFile, rename } from 'node:fs/promises';
import type { z } from 'zod';

const MODE_OWNER_ONLY = 0o600;

/** Reads a JSON file by its schema; undefined when there is none. Throws with the file's name when it is damaged. */
export async function readJsonFile<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema> | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as Error).message}. Restore it from a copy, or move it away to start afresh.`);
  }
}

/** Replaces a JSON file as a whole, readable by its owner only; a crash leaves the old or the new one. */
export async function writeJsonFile(path: string, value: unknown): Promise<void> {
  const fresh = `${path}.new`;
  const file = await open(fresh, 'w', MODE_OWNER_ONLY);
  try {
    await file.writeFile(`${JSON.stringify(value, undefined, 2)}\n`);
    await file.chmod(MODE_OWNER_ONLY);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, path);
}

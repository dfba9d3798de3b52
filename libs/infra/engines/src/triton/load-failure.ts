import { open } from 'node:fs/promises';
import { SERVED_MODEL } from './model-repository.js';

/** The reason stands before tables of settings and the steps of the shutdown. */
const LOOKED_AT_BYTES = 128 * 1_024;
const REASON_PATTERN = new RegExp(`failed to load '${SERVED_MODEL}' version \\S+ (.+?)(?:\\\\n|"$)`, 'gm');

/** Why Triton did not load the model, out of its log; undefined when the log does not say. */
export async function loadFailureOf(logFile: string): Promise<string | undefined> {
  const file = await open(logFile, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const length = Math.min(size, LOOKED_AT_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return [...buffer.toString('utf8').matchAll(REASON_PATTERN)].at(-1)?.[1];
  } finally {
    await file.close();
  }
}

import { open } from 'node:fs/promises';

const TAIL_BYTES = 4_096;
/** What goes into a reason: the last lines say why an engine died, the rest is start-up chatter. */
const REASON_CHARACTERS_MAX = 600;
const COLOUR_PATTERN = /\u001b\[[0-9;]*m/g;

/** The last lines an engine printed, on one line; empty when it printed nothing or the file cannot be read. */
export async function logTail(path: string): Promise<string> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return '';
  try {
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString('utf8').replace(COLOUR_PATTERN, '').split('\n').map((line) => line.trim()).filter((line) => line !== '');
    return lines.join(' | ').slice(-REASON_CHARACTERS_MAX);
  } finally {
    await file.close();
  }
}

import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 50;

/** Asks again until the answer is there; throws with what was missing after `limitMs`. An answer that fails counts as not there. */
export async function until<Value>(what: string, limitMs: number, ask: () => Promise<Value | undefined>): Promise<Value> {
  const deadline = performance.now() + limitMs;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const value = await ask();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    await pause(POLL_MS);
  }
  throw new Error(`${what}: not within ${limitMs} ms${last === undefined ? '' : `; last: ${last instanceof Error ? last.message : String(last)}`}`);
}

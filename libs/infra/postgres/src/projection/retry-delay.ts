import { setTimeout as delay } from 'node:timers/promises';

const RETRY_DELAY_MS_MIN = 100;
const RETRY_DELAY_MS_MAX = 5_000;

/** Waits longer after each failure in a row; returns early, without an error, when the signal fires. */
export async function waitBeforeRetry(failures: number, signal: AbortSignal): Promise<void> {
  const delayMs = Math.min(RETRY_DELAY_MS_MAX, RETRY_DELAY_MS_MIN * 2 ** Math.min(failures - 1, 16));
  await delay(delayMs, undefined, { signal }).catch(() => undefined);
}

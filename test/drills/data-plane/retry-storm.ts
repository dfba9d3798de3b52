import { setTimeout as pause } from 'node:timers/promises';
import { scripted } from '../../platform/scripted-engine.js';
import { ask, check, TWIN_MODEL, type World } from './world.js';

const CALLS = 300;
const WORKERS = 20;
/** As the OpenAI SDKs by default. */
const SDK_RETRIES = 2;
const SDK_WAIT_MS_MAX = 2_000;
/** Clients that wait longer than this for an error would be stuck in the storm. */
const CALL_TIMEOUT_MS = 15_000;
const STORM_MS_MAX = 90_000;
const AMPLIFICATION_MAX = 1.2;
const RECOVERY_WAIT_MS = 15_000;

export interface StormFigures {
  /** Requests that reached engines for each request that a client sent. */
  readonly amplification: number;
  readonly offered: number;
  readonly upstream: number;
  readonly calls: number;
}

/** Every replica refuses and every client tries again as SDKs do: the platform must not multiply the load, and must come back at once. */
export async function retryStorm(world: World): Promise<StormFigures> {
  world.say('a storm of retries');
  const startedMs = performance.now();
  let [offered, unanswered] = [0, 0];
  const call = async (index: number): Promise<void> => {
    for (let attempt = 0; attempt <= SDK_RETRIES; attempt += 1) {
      offered += 1;
      const outcome = await ask(world, { model: TWIN_MODEL, content: scripted('refuse', `storm-${index}`), headers: { 'x-stainless-retry-count': String(attempt) }, timeoutMs: CALL_TIMEOUT_MS });
      if (outcome.status === 0) unanswered += 1;
      if (outcome.status === 200 || outcome.headers['x-should-retry'] === 'false') return;
      await pause(Math.min(SDK_WAIT_MS_MAX, Number(outcome.headers['retry-after-ms'] ?? 500)));
    }
  };
  let next = 0;
  await Promise.all(Array.from({ length: WORKERS }, async () => {
    while (next < CALLS && performance.now() - startedMs < STORM_MS_MAX) {
      next += 1;
      await call(next);
    }
  }));
  const upstream = world.engine.of('refuse').length;
  const amplification = upstream / offered;
  check(world, 'a storm of retries is not multiplied', amplification <= AMPLIFICATION_MAX, `${upstream} upstream for ${offered} offered (${CALLS} calls)`);
  check(world, 'in a storm every call gets an answer in time', unanswered === 0 && next >= CALLS, `${unanswered} of ${offered} had none, ${next} of ${CALLS} calls were made`);
  const healedAtMs = performance.now();
  let healed = false;
  while (!healed && performance.now() - healedAtMs < RECOVERY_WAIT_MS) {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => ask(world, { model: TWIN_MODEL, content: scripted('answer') })));
    healed = outcomes.every((outcome) => outcome.status === 200);
    if (!healed) await pause(250);
  }
  check(world, 'after a storm everything is served again', healed, `${((performance.now() - healedAtMs) / 1_000).toFixed(1)} s`);
  return { amplification, offered, upstream, calls: CALLS };
}

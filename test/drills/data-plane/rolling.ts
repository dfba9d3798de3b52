import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '@penstock/infra-composition';
import { ChatClient, readStream, type ChatOutcome } from '../../platform/chat-client.js';
import { scripted } from '../../platform/scripted-engine.js';
import type { ServiceProcess } from '../../platform/service-process.js';
import { check, countBy, MODEL, type World } from './world.js';

export const ROLLING_REQUESTS = 30_000;
const WORKERS = 16;
const STREAM_EVERY = 3;
const TALK_EVERY = 60;
/** What a load balancer or an SDK does when an address does not answer or asks it to come back: the other one, after a moment. */
const FAILOVER_WAIT_MS = 150;
const HINT_MS_MAX = 1_000;
/** A request that was not served after so long has failed, whatever it was told meanwhile. */
const REQUEST_MS_MAX = 20_000;
/** Requests between two restarts, so that each happens under load. */
const REQUESTS_PER_RESTART = 1_500;

export interface RollingFigures {
  readonly requests: number;
  readonly failed: number;
  readonly failovers: number;
  /** Answers that asked the client to come back, as an overloaded gateway does. */
  readonly shed: number;
  readonly restarts: number;
}

const ORDER: readonly ServiceName[] = ['registry', 'scheduler', 'autoscaler', 'metering', 'batch', 'agent', 'router', 'gateway'];

/** Every service is stopped in an orderly way and started again under load, each gateway behind clients that know two addresses. */
export async function rollingRestart(world: World, second: ServiceProcess): Promise<RollingFigures> {
  world.say(`rolling restart of every service under ${ROLLING_REQUESTS} requests`);
  const addresses = [world.installation.url, second.url];
  const client = new ChatClient();
  const failures: string[] = [];
  let [next, done, failovers, restarts, shed] = [0, 0, 0, 0, 0];
  let phase = 'warm-up';
  const one = async (index: number): Promise<void> => {
    const began = phase;
    let last = '';
    let waitMs = FAILOVER_WAIT_MS;
    const startedMs = performance.now();
    for (let attempt = 0; performance.now() - startedMs < REQUEST_MS_MAX; attempt += 1) {
      if (attempt > 0) {
        failovers += 1;
        await pause(waitMs);
      }
      const stream = index % STREAM_EVERY === 0;
      const outcome = await client.ask({ url: addresses[(index + attempt) % 2] ?? '', key: world.key, model: MODEL, content: scripted(index % TALK_EVERY === 0 ? 'talk' : 'answer', `r${index}`), stream });
      const verdict = judge(outcome, stream, `r${index} `);
      if (verdict === 'served') return;
      if (outcome.status === 429) shed += 1;
      waitMs = Math.min(HINT_MS_MAX, Number(outcome.headers['retry-after-ms'] ?? FAILOVER_WAIT_MS));
      last = `${began} to ${phase}: ${outcome.status} ${outcome.error ?? ''} ${outcome.text.slice(0, 160)}`;
      // A stream that had begun cannot be asked for again.
      if (verdict === 'broken') break;
    }
    failures.push(last);
  };
  const load = Promise.all(Array.from({ length: WORKERS }, async () => {
    while (next < ROLLING_REQUESTS || restarts < ORDER.length + 1) {
      next += 1;
      await one(next);
      done += 1;
    }
  }));
  const somewhatLater = async (): Promise<void> => {
    const target = done + REQUESTS_PER_RESTART;
    while (done < target) await pause(20);
  };
  const services: readonly ServiceProcess[] = [...ORDER.map((name) => world.installation.service(name)), second];
  for (const [index, service] of services.entries()) {
    await somewhatLater();
    phase = `restart of ${service.name} ${index}`;
    world.say(phase);
    await service.stop();
    await service.start();
    restarts += 1;
  }
  await load;
  client.close();
  for (const failure of failures.slice(0, 10)) world.say(`failed: ${failure}`);
  check(world, 'a rolling restart fails no request', failures.length === 0 && done >= ROLLING_REQUESTS, `${failures.length} of ${done} failed, ${failovers} went to the other gateway; ${JSON.stringify(countBy(failures.map((failure) => failure.slice(0, 60))))}`);
  return { requests: done, failed: failures.length, failovers, shed, restarts };
}

function judge(outcome: ChatOutcome, stream: boolean, marker: string): 'served' | 'elsewhere' | 'broken' {
  if (outcome.status === 200) {
    if (!stream) return outcome.isComplete && outcome.text.includes(marker) ? 'served' : 'elsewhere';
    const answer = readStream(outcome.text);
    if (answer.isDone && answer.finishReason !== undefined && answer.content.startsWith(marker)) return 'served';
    return answer.content === '' ? 'elsewhere' : 'broken';
  }
  return 'elsewhere';
}

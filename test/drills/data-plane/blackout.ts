import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '@penstock/infra-composition';
import { readStream } from '../../platform/chat-client.js';
import { createTenant, usageOf } from '../../platform/drill-world.js';
import { scripted } from '../../platform/scripted-engine.js';
import { ask, check, countBy, MODEL, TWIN_MODEL, type World } from './world.js';

/** Everything but gateways, agents and engines. */
const SERVICES: readonly ServiceName[] = ['registry', 'scheduler', 'autoscaler', 'metering', 'batch', 'router'];
/** Far beyond every lease, loan, slice of a limit and silence that a gateway counts with. */
const BLACKOUT_MS = 45_000;
const WORKERS = 8;
const PAUSE_MS = 50;
/** A limit that the load stays under. Per minute. */
const REQUESTS_ALLOWED = 1_000_000;

export interface BlackoutFigures {
  readonly requests: number;
  readonly failed: number;
}

/** The router, every control service, NATS and PostgreSQL are gone at once, and for long: warm models and known keys go on, limits included, and what was used is there afterwards. */
export async function blackout(world: World): Promise<BlackoutFigures> {
  world.say(`everything but gateway, agent and engines is down for ${BLACKOUT_MS / 1_000} s`);
  const { installation } = world;
  const { key, keyId } = await createTenant(installation, 'Limited');
  await installation.admin('POST', '/admin/v1/limits', { subject_id: keyId, requests_per_minute: REQUESTS_ALLOWED, concurrency: 64 });
  // A key is known once it was created, and a limit is lent to whoever used it.
  await ask(world, { key, content: scripted('answer', 'before') });
  await Promise.all([...SERVICES.map((name) => installation.service(name).kill()), installation.servers.kill('postgres'), installation.servers.kill('nats')]);
  const failures: string[] = [];
  const served: string[] = [];
  const endMs = performance.now() + BLACKOUT_MS;
  await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => {
    for (let index = 0; performance.now() < endMs; index += 1) {
      const [stream, marker] = [index % 2 === 0, `dark-${worker}-${index}`];
      const outcome = await ask(world, { key: worker % 2 === 0 ? key : world.key, model: worker % 4 < 2 ? MODEL : TWIN_MODEL, content: scripted('answer', marker), stream });
      const isServed = outcome.status === 200 && (stream ? readStream(outcome.text).isDone && readStream(outcome.text).errorCode === undefined : outcome.text.includes(marker));
      if (isServed) served.push(String(outcome.headers['x-request-id']));
      else failures.push(`${outcome.status} ${outcome.error ?? ''} ${outcome.text.slice(0, 120)}`);
      await pause(PAUSE_MS);
    }
  }));
  const health = await fetch(`${installation.url}/readyz`);
  check(world, 'in the dark: the gateway stays ready, and says what it lacks', health.status === 200 && ((await health.json()) as { status: string }).status === 'degraded', String(health.status));
  check(world, 'in the dark: no request to a warm model by a known key fails', failures.length === 0 && served.length > 0, `${failures.length} of ${failures.length + served.length}: ${JSON.stringify(countBy(failures))}`);
  await Promise.all([installation.servers.restart('nats'), installation.servers.restart('postgres')]);
  for (const name of SERVICES) await installation.service(name).start();
  const usage = await usageOf(installation, served);
  const missing = served.filter((id) => !usage.has(id));
  check(world, 'in the dark: what was used is recorded once there is light', missing.length === 0, `${missing.length} of ${served.length} are missing`);
  return { requests: failures.length + served.length, failed: failures.length };
}

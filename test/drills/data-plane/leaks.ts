import { readdir, readlink } from 'node:fs/promises';
import { metricOf } from '../../platform/drill-world.js';
import { until } from '../../platform/eventually.js';
import { ask, check, type World } from './world.js';

/** Longer than an unused connection to an engine is kept, and than a lease lives. */
const QUIET_WAIT_MS = 40_000;
/** Connections that a gateway may open for its own purposes between two looks. */
const SOCKETS_SLACK = 8;

export interface Holdings {
  readonly requests: number;
  readonly leases: number;
  readonly waiting: number;
  readonly engineRequests: number;
  readonly unpublished: number;
  readonly sockets: number;
}

/** What gateway, router and engine hold now. At rest all but the sockets are zero. */
export async function holdings(world: World): Promise<Holdings> {
  const { installation, engine } = world;
  const [gateway, router] = [installation.service('gateway'), installation.service('router')];
  const [requests, unpublished, leases, waiting, sockets] = await Promise.all([
    metricOf(gateway.url, 'penstock_chat_requests_in_flight'),
    metricOf(gateway.url, 'penstock_usage_unpublished'),
    metricOf(router.url, 'penstock_router_in_flight'),
    metricOf(router.url, 'penstock_router_queue_depth'),
    socketsOf(gateway.pid ?? 0),
  ]);
  return { requests, leases, waiting, engineRequests: engine.open, unpublished, sockets };
}

async function socketsOf(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  const targets = await Promise.all((await readdir(folder)).map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

/** Waits until everything is given back. Returns how much never is. */
export async function leaked(world: World, atStart: Holdings): Promise<number> {
  world.client.close();
  let last = await holdings(world);
  const countOf = (now: Holdings): number => now.requests + now.leases + now.waiting + now.engineRequests + now.unpublished + Math.max(0, now.sockets - atStart.sockets - SOCKETS_SLACK);
  await until('everything is given back', QUIET_WAIT_MS, async () => {
    last = await holdings(world);
    return countOf(last) === 0 ? true : undefined;
  }).catch(() => undefined);
  const count = countOf(last);
  check(world, 'nothing is left behind', count === 0, `${JSON.stringify(last)}, at the start ${atStart.sockets} sockets`);
  const after = await ask(world, { content: 'Are you there?' });
  check(world, 'the next request is served as ever', after.status === 200, `${after.status}`);
  return count;
}

import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { metricOf } from '../../platform/drill-world.js';
import { until } from '../../platform/eventually.js';
import type { ChatOutcome } from '../../platform/chat-client.js';
import { scripted } from '../../platform/scripted-engine.js';
import { ask, check, CLIENT_STALL_TIMEOUT_MS, MODEL, NARROW_MODEL, quantile, type World } from './world.js';

const CROWD = 60;
const SLOTS_AND_PLACES = 6;
const PLACES = 4;
const SINGLE_REFUSALS = 100;
/** Twenty milliseconds are the aim on a machine of its own; this one runs clients and engine as well. */
const REFUSAL_P99_MS = 100;
const SLOW_READERS = 100;
/** One and a half mebibytes for each reader, of the forty-nine that an engine offers it: the buffers of two sockets. */
const MEMORY_GROWTH_MAX = SLOW_READERS * 1.5 * 1_024 * 1_024;
const PAGE_BYTES = 4_096;
const LORIS_SOCKETS = 1_000;
const LORIS_BYTE_MS = 1_000;
const CUT_WAIT_MS = 30_000;
const LORIS_WAIT_MS = 90_000;

/** More requests than slots and places: the surplus is told so at once, with a time to come back, and nobody waits in order to be refused. */
export async function queueFull(world: World): Promise<{ readonly refusalP99Ms: number }> {
  world.say('a full queue');
  const crowd = Array.from({ length: CROWD }, (_, index) => ask(world, { model: NARROW_MODEL, content: scripted('talk', `queue-${index}`), stream: true }));
  // With every slot and every place taken by answers that do not end, each further request is refused; one at a time, so that it waits for nobody.
  const holders = new AbortController();
  const outcomes = await Promise.all(crowd);
  const held = Array.from({ length: SLOTS_AND_PLACES }, (_, index) => ask(world, { model: NARROW_MODEL, content: scripted('endless', `hold-${index}`), stream: true, tokensMax: 8_000, leaveWhen: new Promise((resolve) => holders.signal.addEventListener('abort', () => resolve())) }));
  await until('every slot is held', CUT_WAIT_MS, () => Promise.resolve(world.engine.of('endless').filter((seen) => seen.marker.startsWith('hold-')).length >= 2 ? true : undefined));
  // Those that wait may come later than those that run begin; until they are there, a further request would get a place.
  const { url: routerUrl } = world.installation.service('router');
  await until('every place is taken', CUT_WAIT_MS, async () => ((await metricOf(routerUrl, 'penstock_router_queue_depth')) >= PLACES ? true : undefined));
  const single: ChatOutcome[] = [];
  for (let index = 0; index < SINGLE_REFUSALS; index += 1) single.push(await ask(world, { model: NARROW_MODEL, content: scripted('answer', `single-${index}`) }));
  holders.abort();
  await Promise.all(held);
  const refused = outcomes.filter((outcome) => outcome.status === 429);
  const served = outcomes.filter((outcome) => outcome.status === 200);
  const hinted = refused.filter((outcome) => Number(outcome.headers['retry-after-ms']) > 0);
  const refusalP99Ms = quantile(single.filter((outcome) => outcome.status === 429).map((outcome) => outcome.totalMs), 0.99);
  check(world, 'a full queue refuses everybody', single.every((outcome) => outcome.status === 429), `${single.filter((outcome) => outcome.status === 429).length} of ${single.length}`);
  check(world, 'a full queue serves what it took', served.length >= SLOTS_AND_PLACES && served.length + refused.length === CROWD, `${served.length} served, ${refused.length} refused of ${CROWD}`);
  check(world, 'a full queue tells when to come back', hinted.length === refused.length, `${hinted.length} of ${refused.length}`);
  check(world, 'a full queue refuses at once', refusalP99Ms <= REFUSAL_P99_MS, `p99 ${refusalP99Ms.toFixed(0)} ms one at a time, at most ${REFUSAL_P99_MS}`);
  return { refusalP99Ms };
}

/** Clients that take nothing while an engine sends as fast as it can: memory stays flat, and they are cut off in time. */
export async function slowReaders(world: World): Promise<{ readonly memoryGrowthBytes: number }> {
  world.say('slow readers');
  const before = await memoryOf(world);
  const sockets = Array.from({ length: SLOW_READERS }, (_, index) => postAndStall(world, scripted('flood', `slow-${index}`)));
  let peak = before;
  const watch = setInterval(() => void memoryOf(world).then((bytes) => (peak = Math.max(peak, bytes))), 250);
  await pause(CLIENT_STALL_TIMEOUT_MS);
  const cut = await until('every slow reader is cut off', CUT_WAIT_MS, () => Promise.resolve(world.engine.of('flood').length >= SLOW_READERS && world.engine.of('flood').every((seen) => seen.isOver) ? true : undefined)).catch(() => false);
  clearInterval(watch);
  for (const socket of sockets) socket.destroy();
  const memoryGrowthBytes = peak - before;
  check(world, 'slow readers are cut off and their engines freed', cut, `${world.engine.of('flood').filter((seen) => !seen.isOver).length} of ${SLOW_READERS} still run`);
  check(world, 'slow readers cost no memory', memoryGrowthBytes <= MEMORY_GROWTH_MAX, `${(memoryGrowthBytes / 1_048_576).toFixed(0)} MiB more at the peak, at most ${MEMORY_GROWTH_MAX / 1_048_576}`);
  return { memoryGrowthBytes };
}

function postAndStall(world: World, content: string): Socket {
  const body = JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content }] });
  const socket = connect(world.installation.settings.gatewayPort, '127.0.0.1', () => {
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    socket.pause();
  });
  socket.on('error', () => undefined);
  return socket;
}

async function memoryOf(world: World): Promise<number> {
  const text = await readFile(`/proc/${world.installation.service('gateway').pid ?? 0}/statm`, 'utf8');
  return Number(text.split(' ')[1]) * PAGE_BYTES;
}

export interface Loris {
  readonly closed: () => number;
  readonly finish: () => Promise<void>;
}

/** A thousand sockets that send their headers one byte at a time. They go on while the other scenarios run. */
export function startLoris(world: World): Loris {
  world.say('a thousand sockets that never finish their headers');
  let closed = 0;
  const sockets = Array.from({ length: LORIS_SOCKETS }, () => {
    const socket = connect(world.installation.settings.gatewayPort, '127.0.0.1', () => socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: '));
    socket.on('error', () => undefined);
    socket.once('close', () => (closed += 1));
    socket.resume();
    return socket;
  });
  const drip = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('a');
  }, LORIS_BYTE_MS);
  const finish = async (): Promise<void> => {
    await until('slow sockets closed', LORIS_WAIT_MS, () => Promise.resolve(closed === LORIS_SOCKETS ? true : undefined)).catch(() => undefined);
    clearInterval(drip);
    const byServer = closed;
    for (const socket of sockets) socket.destroy();
    check(world, 'sockets that never finish their headers are closed', byServer === LORIS_SOCKETS, `${byServer} of ${LORIS_SOCKETS}`);
  };
  return { closed: () => closed, finish };
}

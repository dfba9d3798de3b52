import { until } from '../../platform/eventually.js';
import { scripted, type SeenRequest } from '../../platform/scripted-engine.js';
import type { behaviours } from '../../platform/engine-behaviours.js';
import { ask, check, quantile, type World } from './world.js';

const ABORT_WAIT_MS = 5_000;
const ONE_BY_ONE = 30;
const AT_ONCE = 200;
/** Measured bounds of a Node proxy that passes a disconnect on: one at a time, and two hundred at once on a busy machine. */
const P99_ONE_BY_ONE_MS = 100;
const P99_AT_ONCE_MS = 250;

export interface DisconnectFigures {
  readonly disconnects: number;
  readonly aborted: number;
  /** From the client's close to the engine's, at two hundred at once. */
  readonly atOnceP99Ms: number;
  readonly oneByOneP99Ms: number;
}

/** Clients that leave: alone and together, in the middle and before the first token, streamed and not. The engine must learn of each. */
export async function disconnects(world: World): Promise<DisconnectFigures> {
  world.say('clients that leave');
  const middle = await leaveOneByOne(world, 'endless', true, 'mid');
  const early = await leaveOneByOne(world, 'silent', true, 'early');
  const unstreamed = await leaveOneByOne(world, 'silent', false, 'whole');
  const together = await leaveTogether(world);
  const oneByOne = [...middle, ...early, ...unstreamed];
  const lags = (values: readonly (number | undefined)[]): number[] => values.filter((value) => value !== undefined);
  const oneByOneP99Ms = quantile(lags(oneByOne), 0.99);
  const atOnceP99Ms = quantile(lags(together), 0.99);
  check(world, 'every disconnect reaches the engine', [...oneByOne, ...together].every((lag) => lag !== undefined), `${lags([...oneByOne, ...together]).length} of ${oneByOne.length + together.length}`);
  check(world, 'one disconnect at a time is passed on at once', oneByOneP99Ms <= P99_ONE_BY_ONE_MS, `p99 ${oneByOneP99Ms.toFixed(0)} ms, at most ${P99_ONE_BY_ONE_MS}`);
  check(world, 'two hundred disconnects at once are passed on', atOnceP99Ms <= P99_AT_ONCE_MS, `p99 ${atOnceP99Ms.toFixed(0)} ms, at most ${P99_AT_ONCE_MS}`);
  return { disconnects: oneByOne.length + together.length, aborted: lags([...oneByOne, ...together]).length, atOnceP99Ms, oneByOneP99Ms };
}

async function leaveOneByOne(world: World, behaviour: keyof typeof behaviours, stream: boolean, prefix: string): Promise<(number | undefined)[]> {
  const lags: (number | undefined)[] = [];
  for (let index = 0; index < ONE_BY_ONE; index += 1) {
    const marker = `${prefix}-${index}`;
    const outcome = await ask(world, { content: scripted(behaviour, marker), stream, leave: behaviour === 'endless' ? { afterBytes: 600 } : { afterMs: 60 } });
    lags.push(await abortLag(world, marker, outcome.leftAtMs));
  }
  return lags;
}

/** All are in the middle of their answer when all leave in the same moment. */
async function leaveTogether(world: World): Promise<(number | undefined)[]> {
  const markers = Array.from({ length: AT_ONCE }, (_, index) => `crowd-${index}`);
  const leaving = Promise.withResolvers<void>();
  const asked = markers.map(async (marker) => {
    const answer = ask(world, { content: scripted('endless', marker), stream: true, leaveWhen: leaving.promise });
    return { marker, outcome: await answer };
  });
  await until(`${AT_ONCE} streams in work`, 30_000, () => Promise.resolve(world.engine.of('endless').filter((seen) => seen.marker.startsWith('crowd-') && !seen.isOver).length === AT_ONCE ? true : undefined));
  leaving.resolve();
  const left = await Promise.all(asked);
  return Promise.all(left.map(({ marker, outcome }) => abortLag(world, marker, outcome.leftAtMs)));
}

/** Milliseconds from the client's close to the engine's; undefined when the engine never learned of it. */
async function abortLag(world: World, marker: string, leftAtMs: number | undefined): Promise<number | undefined> {
  const seen = await until(`abort of ${marker}`, ABORT_WAIT_MS, () => {
    const found: SeenRequest | undefined = world.engine.seen.find((request) => request.marker === marker);
    return Promise.resolve(found?.isOver === true ? found : undefined);
  }).catch(() => undefined);
  if (seen?.abortedAtMs === undefined || leftAtMs === undefined) return undefined;
  return Math.max(0, seen.abortedAtMs - leftAtMs);
}

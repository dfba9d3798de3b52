import { readStream, type ChatOutcome } from '../../platform/chat-client.js';
import { scripted } from '../../platform/scripted-engine.js';
import { ask, check, type World } from './world.js';

export const CANCELS = 10_000;
const WORKERS = 64;
/** Of the requests, so many are not cancelled: they must come whole. */
const STAY_SHARE = 0.15;
const STREAM_SHARE = 0.8;
const LEAVE_BYTES_MAX = 3_000;
const LEAVE_MS_MAX = 60;

export interface CancelFigures {
  readonly requests: number;
  readonly cancelled: number;
  /** Refused with 429, as an overloaded gateway does. */
  readonly shed: number;
  /** Bytes of answers that bear another request's marker. */
  readonly foreignBytes: number;
}

/** Ten thousand requests, each with a marker of its own in every piece of its answer, most of them cancelled at a random moment. */
export async function randomCancels(world: World): Promise<CancelFigures> {
  world.say(`${CANCELS} random cancels`);
  let [foreignBytes, next, cancelled, stayed, broken, shed] = [0, 0, 0, 0, 0, 0];
  let firstBroken = '';
  const one = async (index: number): Promise<void> => {
    const marker = `mark${index}-${Math.floor(world.random() * 1e9)}`;
    const stream = world.random() < STREAM_SHARE;
    const stays = world.random() < STAY_SHARE;
    const leave = world.random() < 0.5 ? { afterMs: world.random() * LEAVE_MS_MAX } : { afterBytes: 1 + world.random() * LEAVE_BYTES_MAX };
    const outcome = await ask(world, { content: scripted(stays ? 'answer' : 'talk', marker), stream, ...(stays ? {} : { leave }) });
    foreignBytes += foreignIn(outcome, marker);
    if (outcome.leftAtMs !== undefined) cancelled += 1;
    // A gateway that sheds load under all these clients says so, and delivers nothing.
    if (outcome.status === 429) shed += 1;
    if (!stays || outcome.status === 429) return;
    stayed += 1;
    const content = stream ? readStream(outcome.text).content : outcome.text;
    if (outcome.status !== 200 || !content.includes(`${marker} ${marker} `)) {
      broken += 1;
      firstBroken ||= `${outcome.status} ${outcome.error ?? ''} ${outcome.text.slice(0, 160)}`;
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, async () => {
    while (next < CANCELS) {
      next += 1;
      await one(next);
    }
  }));
  check(world, 'no byte of another request\'s answer', foreignBytes === 0, `${foreignBytes} bytes in ${CANCELS} requests`);
  check(world, 'requests beside cancelled ones come whole', broken === 0, `${broken} of ${stayed} did not: ${firstBroken}`);
  check(world, 'most requests are taken in spite of all the cancels', shed < CANCELS / 2, `${shed} of ${CANCELS} were shed`);
  return { requests: CANCELS, cancelled, shed, foreignBytes };
}

const MARKERS = /mark\d+-\d+/g;

function foreignIn(outcome: ChatOutcome, marker: string): number {
  // The last marker may have been cut off by the cancel itself.
  const whole = outcome.isComplete ? outcome.text : outcome.text.slice(0, outcome.text.lastIndexOf(' ') + 1);
  return (whole.match(MARKERS) ?? []).filter((found) => found !== marker).reduce((sum, found) => sum + found.length, 0);
}

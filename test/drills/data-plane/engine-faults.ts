import { setTimeout as pause } from 'node:timers/promises';
import { readStream, type ChatOutcome, type ReadAnswer } from '../../platform/chat-client.js';
import { usageOf } from '../../platform/drill-world.js';
import type { behaviours } from '../../platform/engine-behaviours.js';
import { until } from '../../platform/eventually.js';
import { scripted } from '../../platform/scripted-engine.js';
import { ask, check, CHUNK_GAP_TIMEOUT_MS, FIRST_TOKEN_TIMEOUT_MS, SIM_MODEL, type World } from './world.js';

const TOKENS_ASKED = 16;
/** A time limit is looked at four times a second; the rest is for a loaded machine. */
const LIMIT_SLACK_MS = 3_000;
const RECOVERY_WAIT_MS = 60_000;
/** Pieces beyond the limit that pass, since engines may split tokens, and those that were on their way. */
const PIECES_SLACK = 18;
/** How long a request that failed before its first token waits for another replica. */
const RETRY_WAIT_MS = 5_000;
const STREAMS_ON_TWO = 32;

/** Engines that break, lie, hang and go on for ever: the client gets an error that says so, the bill stays right, the gateway stays well. */
export async function engineFaults(world: World): Promise<void> {
  world.say('engines that misbehave');
  await broken(world, 'garbage', 'engine_response_invalid');
  await broken(world, 'done-after-error', 'replica_failed');
  await beforeTheFirstToken(world, 'out-of-memory', 502);
  await timeLimits(world);
  await lyingUsage(world);
  await endless(world);
  await answeredTwice(world);
  await killed(world);
  await stopped(world);
}

async function streamed(world: World, behaviour: keyof typeof behaviours): Promise<{ outcome: ChatOutcome; answer: ReadAnswer }> {
  const outcome = await ask(world, { content: scripted(behaviour, behaviour), stream: true, tokensMax: TOKENS_ASKED });
  return { outcome, answer: readStream(outcome.text) };
}

/** Two tokens come, then the engine breaks: an error event, no finish reason, no frame that is not JSON, and no second try. */
async function broken(world: World, behaviour: 'garbage' | 'done-after-error', code: string): Promise<void> {
  const { outcome, answer } = await streamed(world, behaviour);
  const seen = world.engine.of(behaviour).length;
  check(world, `${behaviour}: an error event ends the stream`, answer.errorCode === code && answer.finishReason === undefined && answer.strayFrames === 0, `code ${answer.errorCode ?? 'none'}, finish ${answer.finishReason ?? 'none'}, ${answer.strayFrames} stray frames`);
  check(world, `${behaviour}: no second try after the first token`, seen === 1, `${seen} upstream`);
  check(world, `${behaviour}: no words of the engine's inside reach the client`, !/CUDA|binary/.test(outcome.text), outcome.text.slice(-200));
}

async function beforeTheFirstToken(world: World, behaviour: 'out-of-memory', status: number): Promise<void> {
  const { outcome } = await streamed(world, behaviour);
  check(world, `${behaviour}: status ${status}`, outcome.status === status && !outcome.text.includes('CUDA'), `${outcome.status}: ${outcome.text.slice(0, 200)}`);
}

async function timeLimits(world: World): Promise<void> {
  const [silent, stuck] = await Promise.all([streamed(world, 'silent'), streamed(world, 'stuck')]);
  // Another try may follow at another replica; there is none, so it waits for one a while.
  check(world, 'an engine that never begins is given up', silent.outcome.totalMs < FIRST_TOKEN_TIMEOUT_MS + RETRY_WAIT_MS + LIMIT_SLACK_MS && (silent.outcome.status === 504 || silent.answer.errorCode === 'engine_timeout'), `${silent.outcome.status} after ${silent.outcome.totalMs.toFixed(0)} ms: ${silent.answer.errorCode ?? silent.outcome.text.slice(0, 200)}`);
  check(world, 'an engine that stops in the middle is given up', stuck.outcome.totalMs < CHUNK_GAP_TIMEOUT_MS + LIMIT_SLACK_MS && stuck.answer.errorCode === 'engine_timeout', `after ${stuck.outcome.totalMs.toFixed(0)} ms: ${stuck.answer.errorCode ?? 'no error'}`);
  await until('both are aborted at the engine', RECOVERY_WAIT_MS, () => Promise.resolve([...world.engine.of('silent'), ...world.engine.of('stuck')].every((seen) => seen.isOver) ? true : undefined));
}

/** A claim beyond what was asked for cannot be true, and is not billed. */
async function lyingUsage(world: World): Promise<void> {
  for (const behaviour of ['lying-usage', 'broken-usage'] as const) {
    const { outcome, answer } = await streamed(world, behaviour);
    const requestId = String(outcome.headers['x-request-id']);
    const billed = (await usageOf(world.installation, [requestId])).get(requestId);
    const isSane = billed !== undefined && billed.completionTokens >= 0 && billed.completionTokens <= TOKENS_ASKED && billed.promptTokens >= 0;
    check(world, `${behaviour}: not billed from a count that cannot be`, isSane, `billed ${billed?.completionTokens ?? 'nothing'} of at most ${TOKENS_ASKED}, told the client ${answer.completionTokens ?? 'nothing'}`);
  }
}

/** A limit that the engine ignores is kept by the gateway. */
async function endless(world: World): Promise<void> {
  const outcome = await ask(world, { content: scripted('endless', 'endless'), stream: true, tokensMax: TOKENS_ASKED, timeoutMs: 10_000 });
  const answer = readStream(outcome.text);
  const words = answer.content.split(' ').length - 1;
  check(world, 'an endless answer is cut at the limit', outcome.isComplete && words <= TOKENS_ASKED + PIECES_SLACK, `${words} tokens of ${TOKENS_ASKED}, ${outcome.isComplete ? 'ended' : 'had not ended'}: ${answer.finishReason ?? answer.errorCode ?? 'no end'}`);
}

/** What an engine sends unasked on a kept connection must never be the answer of whoever comes next. */
async function answeredTwice(world: World): Promise<void> {
  let foreign = 0;
  for (let index = 0; index < 20; index += 1) {
    await ask(world, { content: scripted('answer-twice', `twice-${index}`) });
    const next = await ask(world, { content: scripted('answer', `after-${index}`) });
    if (next.text.includes('twice-') || (next.status === 200 && !next.text.includes(`after-${index}`))) foreign += 1;
  }
  check(world, 'a second answer on a kept connection is dropped', foreign === 0, `${foreign} of 20 got an answer that was not theirs`);
}

async function simPids(world: World): Promise<readonly number[]> {
  return (await world.installation.engines()).filter(({ kind }) => kind === 'engine-sim').map(({ pid }) => pid);
}

const longStory = { model: SIM_MODEL, content: 'Tell a long story.', stream: true, tokensMax: 400 };

/** kill -9 of one of two engines: answers in the middle end with an error at once, everything else is served by the other. */
async function killed(world: World): Promise<void> {
  const [victim] = await simPids(world);
  if (victim === undefined) return check(world, 'an engine can be killed', false, 'no simulated engine runs');
  const running = Array.from({ length: STREAMS_ON_TWO }, (_, index) => ask(world, { ...longStory, content: `Tell story ${index}.` }));
  await pause(300);
  process.kill(victim, 'SIGKILL');
  const killedAtMs = performance.now();
  const later = await Promise.all(Array.from({ length: 40 }, () => ask(world, { model: SIM_MODEL, content: 'Short.', tokensMax: 4 })));
  const answers = (await Promise.all(running)).map((outcome) => readStream(outcome.text));
  const interrupted = answers.filter((answer) => answer.errorCode !== undefined);
  const unclear = answers.filter((answer) => answer.errorCode === undefined && (answer.finishReason === undefined || !answer.isDone));
  check(world, 'a killed engine: every stream ends with a finish or an error event', interrupted.length > 0 && unclear.length === 0 && answers.every((answer) => answer.strayFrames === 0), `${interrupted.length} errors, ${unclear.length} unclear`);
  check(world, 'a killed engine: no request that had no token fails', later.every((outcome) => outcome.status === 200), `${later.filter((outcome) => outcome.status !== 200).length} of ${later.length} failed: ${later.find((outcome) => outcome.status !== 200)?.text.slice(0, 200) ?? ''}`);
  await until('a new engine in the place of the killed one', RECOVERY_WAIT_MS, async () => ((await simPids(world)).filter((pid) => pid !== victim).length >= 2 ? true : undefined))
    .then(() => check(world, 'a killed engine is replaced', true, `${((performance.now() - killedAtMs) / 1_000).toFixed(1)} s`), (error: Error) => check(world, 'a killed engine is replaced', false, error.message));
}

/** A stopped process still has its port open: only time and the missing tokens tell. */
async function stopped(world: World): Promise<void> {
  const [victim] = await simPids(world);
  if (victim === undefined) return check(world, 'an engine can be stopped', false, 'no simulated engine runs');
  const running = Array.from({ length: STREAMS_ON_TWO }, (_, index) => ask(world, { ...longStory, content: `Tell story ${index}.` }));
  await pause(300);
  process.kill(victim, 'SIGSTOP');
  try {
    const answers = (await Promise.all(running)).map((outcome) => readStream(outcome.text));
    const hung = answers.filter((answer) => answer.errorCode === undefined && !answer.isDone);
    check(world, 'a stopped engine: no stream hangs', hung.length === 0, `${hung.length} of ${answers.length} hung`);
    const later = await Promise.all(Array.from({ length: 20 }, () => ask(world, { model: SIM_MODEL, content: 'Short.', tokensMax: 4, stream: true })));
    const served = later.filter((outcome) => readStream(outcome.text).finishReason !== undefined);
    check(world, 'a stopped engine: requests are served elsewhere', served.length === later.length, `${served.length} of ${later.length} served: ${later.find((outcome) => readStream(outcome.text).finishReason === undefined)?.text.slice(0, 200) ?? ''}`);
  } finally {
    try {
      process.kill(victim, 'SIGCONT');
    } catch {
      // The agent has ended it meanwhile, as it should.
    }
  }
}

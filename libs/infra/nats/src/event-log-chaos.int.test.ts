import { expect, test } from '@jest/globals';
import { accept, EventLogUnavailableError, followProjection, handleCommand, type Decider, type EventLog, type NewEvent, type Projection } from '@penstock/kernel';
import { startTestNats } from '@penstock/testing-kit';
import { connectNats } from './connect-nats.js';
import { ensureStreams } from './ensure-streams.js';
import { NatsEventLog } from './nats-event-log.js';

const WRITERS = 4;
const COMMANDS_PER_WRITER = 60;
const AGGREGATES = 5;
const KILLS = 3;
const ATTEMPTS_MAX = 50;
const TEST_TIMEOUT_MS = 120_000;

type Revoked = NewEvent<'api-key.revoked.v1', { keyId: string; reason: string }>;
interface Command {
  readonly keyId: string;
  readonly commandId: string;
  readonly count: number;
}

/** Every command adds events that name it, so what is lost or doubled can be told. */
const decider: Decider<number, Command, Revoked> = {
  initialState: 0,
  decide: ({ keyId, commandId, count }) => accept(...Array.from({ length: count }, (_, index): Revoked => ({ type: 'api-key.revoked.v1', data: { keyId, reason: `${commandId}/${index}` } }))),
  evolve: (count) => count + 1,
};

/** Keeps the reasons in the order of the stream. */
const everything: Projection<string[]> = {
  name: 'everything',
  version: 1,
  streams: ['EV_ACCESS'],
  initialState: () => [],
  apply: (state, event) => {
    state.push((event.data as Revoked['data']).reason);
    return state;
  },
  snapshot: (state) => state,
  restore: (snapshot) => [...(snapshot as string[])],
};

/** A small seeded generator (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function carryOut(log: EventLog, command: Command): Promise<void> {
  const ref = { context: 'access' as const, aggregate: 'api-key', id: command.keyId };
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    try {
      const metadata = { commandId: command.commandId, source: 'penstock/chaos', nowMs: 0, correlationId: command.commandId, causationId: command.commandId };
      const outcome = await handleCommand(log, decider, ref, command, metadata);
      if (outcome.kind === 'done') return;
    } catch (error) {
      if (!(error instanceof EventLogUnavailableError)) throw error;
    }
  }
  throw new Error(`${command.commandId} was not carried out in ${ATTEMPTS_MAX} attempts`);
}

test('concurrent writers, kills of the server and retries lose nothing and double nothing', async () => {
  const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000);
  process.stderr.write(`event log chaos: CHAOS_SEED=${seed}\n`);
  const random = seeded(seed);
  const server = await startTestNats();
  const links = await Promise.all(Array.from({ length: WRITERS + 1 }, (_, index) => connectNats({ url: server.url, name: `penstock/chaos-${index}` })));
  const [readerLink, ...writerLinks] = links;
  if (readerLink === undefined) throw new Error('no link');
  await ensureStreams(readerLink);
  const reader = new NatsEventLog(readerLink, { consumerName: 'chaos' });
  const projection = await followProjection(reader, everything);

  const expected: string[] = [];
  let done = 0;
  let kills = 0;
  let restarting = Promise.resolve();
  const killAt = Array.from({ length: KILLS }, (_, index) => Math.floor(((index + 0.5 + random() / 2) / (KILLS + 0.5)) * WRITERS * COMMANDS_PER_WRITER));
  await Promise.all(writerLinks.map(async (link, writer) => {
    // Short, so that attempts really give up and are made again from the outside.
    const log = new NatsEventLog(link, { consumerName: 'chaos', totalTimeoutMs: 3_000 });
    for (let index = 0; index < COMMANDS_PER_WRITER; index += 1) {
      const command = { keyId: `key_${Math.floor(random() * AGGREGATES)}`, commandId: `cmd_${writer}_${index}`, count: random() < 0.7 ? 1 : 2 + Math.floor(random() * 2) };
      for (let event = 0; event < command.count; event += 1) expected.push(`${command.commandId}/${event}`);
      await carryOut(log, command);
      done += 1;
      if (kills < KILLS && done >= (killAt[kills] ?? Infinity)) {
        kills += 1;
        restarting = restarting.then(() => server.restart());
      }
    }
  }));
  await restarting;

  const { lastSequence } = await reader.bounds('EV_ACCESS');
  await projection.waitFor('EV_ACCESS', lastSequence);
  const stored: string[] = [];
  for await (const batch of reader.read('EV_ACCESS')) stored.push(...batch.map((event) => (event.data as Revoked['data']).reason));
  expect(kills).toBe(KILLS);
  expect([...stored].sort()).toEqual([...expected].sort());
  expect(projection.state()).toEqual(stored);
  await projection.close();
  await Promise.all(links.map((link) => link.close()));
  await server.close();
}, TEST_TIMEOUT_MS);

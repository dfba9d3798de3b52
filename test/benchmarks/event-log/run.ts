// What the event log costs over the bare NATS client: the same work done both ways against one server, in turns, medians.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream, type JetStreamClient } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { usageRecordedV1, type UsageRecord, type UsageRecordedV2 } from '@penstock/contract-events';
import { connectNats, ensureStreams, NatsEventLog, type NatsLink } from '@penstock/infra-nats';
import { ensureRuntime } from '@penstock/infra-runtimes';
import type { AppendRequest, RecordedEvent } from '@penstock/kernel';
import type { Report, RunContext } from '../../harness.js';

const REBUILD_EVENTS = 200_000;
const PROJECTION_EVENTS = 50_000;
const ROUNDS = 7;
const WRITERS = 64;
const APPENDS_PER_WRITER = 100;
const PROJECTION_RATIO_MIN = 0.7;
const FILL_FLUSH_EVERY = 1_000;
const ENDPOINTS = 50;
const READ_AHEAD = 5_000;

/** `--events N` sets the size of the rebuild, `--rounds N` how often each side runs. */
export async function run({ args, say }: RunContext): Promise<Report> {
  const events = option(args, '--events', REBUILD_EVENTS);
  const rounds = option(args, '--rounds', ROUNDS);
  const server = await startServer();
  try {
    const link = await connectNats({ url: server.url, name: 'bench' });
    await ensureStreams(link);
    const log = new NatsEventLog(link, { consumerName: 'bench' });
    const bare = jetstream(link.connection);
    say('appends');
    const append = await inTurns(rounds, (round) => bareAppends(bare, round), (round) => ourAppends(log, round));
    say(`filling up to ${events} events`);
    await fill(link, events);
    say('projection');
    const projection = await inTurns(rounds, () => bareFold(bare, Math.min(events, PROJECTION_EVENTS)), () => ourTail(log, Math.min(events, PROJECTION_EVENTS)));
    say('rebuild');
    const rebuild = await inTurns(rounds, () => bareFold(bare, events), () => ourRebuild(log, events));
    await link.close();
    const figures = {
      append_ratio: append.ratio,
      projection_ratio: projection.ratio,
      rebuild_ratio: rebuild.ratio,
      rebuild_events: events,
    };
    const detail = {
      appends_per_s: append.ours,
      bare_appends_per_s: append.bare,
      projection_events_per_s: projection.ours,
      bare_projection_events_per_s: projection.bare,
      rebuild_events_per_s: rebuild.ours,
      bare_rebuild_events_per_s: rebuild.bare,
    };
    return { figures, detail, pass: figures.projection_ratio >= PROJECTION_RATIO_MIN };
  } finally {
    await server.close();
  }
}

function option(args: readonly string[], name: string, fallback: number): number {
  const index = args.indexOf(name);
  const value = index < 0 ? fallback : Number(args[index + 1]);
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} takes a whole number above 0`);
  return value;
}

interface Comparison {
  readonly bare: number;
  readonly ours: number;
  readonly ratio: number;
}

/** Runs both sides round by round, so that a busy moment of the machine hits both. The first round only warms up. Rates per second. */
async function inTurns(rounds: number, bare: (round: number) => Promise<number>, ours: (round: number) => Promise<number>): Promise<Comparison> {
  const rates: { bare: number; ours: number }[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const measured = round % 2 === 0 ? { bare: await bare(round), ours: await ours(round) } : swapped(await ours(round), await bare(round));
    if (round > 0) rates.push(measured);
  }
  return {
    bare: Math.round(median(rates.map((rate) => rate.bare))),
    ours: Math.round(median(rates.map((rate) => rate.ours))),
    ratio: Number(median(rates.map((rate) => rate.ours / rate.bare)).toFixed(3)),
  };
}

function swapped(ours: number, bare: number): { bare: number; ours: number } {
  return { bare, ours };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function rate(count: number, work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (count * 1_000) / (performance.now() - startMs);
}

function usage(endpoint: string, index: number): UsageRecord {
  return { ...usageRecordedV1.example, requestId: `req_${index}`, endpointId: endpoint, promptTokens: index % 997, completionTokens: index % 101 };
}

/** Every writer appends to its own subject, each append expecting its last sequence. */
async function byWriters(append: (subject: string, writer: number, index: number, last: number) => Promise<number>): Promise<number> {
  return rate(WRITERS * APPENDS_PER_WRITER, async () => {
    await Promise.all(Array.from({ length: WRITERS }, async (_, writer) => {
      let last = 0;
      for (let index = 0; index < APPENDS_PER_WRITER; index += 1) last = await append(`ep_${writer}`, writer, index, last);
    }));
  });
}

function bareAppends(bare: JetStreamClient, round: number): Promise<number> {
  return byWriters(async (endpoint, writer, index, last) => {
    const id = `bare_${round}_${writer}_${index}`;
    const body = { id, type: 'usage.recorded.v2', source: 'penstock/bench', time: new Date(0).toISOString(), correlationId: id, causationId: id, data: { records: [usage(endpoint, index)] } };
    const ack = await bare.publish(`ev.usage.bare_${round}.${endpoint}`, JSON.stringify(body), { msgID: id, expect: { lastSubjectSequence: last } });
    return ack.seq;
  });
}

function ourAppends(log: NatsEventLog, round: number): Promise<number> {
  return byWriters(async (endpoint, writer, index, last) => {
    const commandId = `ours_${round}_${writer}_${index}`;
    const request: AppendRequest = {
      ref: { context: 'usage', aggregate: `ours_${round}`, id: endpoint }, events: [{ type: 'usage.recorded.v2', data: { records: [usage(endpoint, index)] } }],
      expected: last, commandId, source: 'penstock/bench', nowMs: 0, correlationId: commandId, causationId: commandId,
    };
    const result = await log.append(request);
    if (result.kind !== 'appended') throw new Error(`unexpected conflict at ${result.actual}`);
    return result.lastSequence;
  });
}

/** Fills the stream up to `events` in all with messages as the event log writes them. */
async function fill(link: NatsLink, events: number): Promise<void> {
  const { connection } = link;
  const log = new NatsEventLog(link, { consumerName: 'bench' });
  const { lastSequence } = await log.bounds('EV_USAGE');
  for (let index = lastSequence; index < events; index += 1) {
    const endpoint = `ep_${index % ENDPOINTS}`;
    const id = `fill_${index}.0`;
    const time = new Date(index).toISOString();
    const extra = headers();
    for (const [name, value] of Object.entries({ 'Nats-Msg-Id': id, 'ce-specversion': '1.0', 'ce-id': id, 'ce-type': 'usage.recorded.v2', 'ce-source': 'penstock/bench', 'ce-time': time, 'ce-correlationid': id, 'ce-causationid': id })) extra.append(name, value);
    const body = { id, type: 'usage.recorded.v2', source: 'penstock/bench', time, correlationId: id, causationId: id, data: { records: [usage(endpoint, index)] } };
    connection.publish(`ev.usage.org_1.${endpoint}`, JSON.stringify(body), { headers: extra });
    if (index % FILL_FLUSH_EVERY === FILL_FLUSH_EVERY - 1) await connection.flush();
  }
  await connection.flush();
  while ((await log.bounds('EV_USAGE')).lastSequence < events) await connection.flush();
}

/** The real handler of both sides: tokens per organisation and endpoint, and requests per status. */
class UsageTotals {
  readonly tokens = new Map<string, { prompt: number; completion: number; requests: number }>();
  readonly statuses = new Map<string, number>();
  count = 0;

  apply(data: UsageRecord): void {
    const key = `${data.organisationId}/${data.endpointId}`;
    const total = this.tokens.get(key) ?? { prompt: 0, completion: 0, requests: 0 };
    total.prompt += data.promptTokens;
    total.completion += data.completionTokens;
    total.requests += 1;
    this.tokens.set(key, total);
    this.statuses.set(data.status, (this.statuses.get(data.status) ?? 0) + 1);
    this.count += 1;
  }
}

function bareFold(bare: JetStreamClient, events: number): Promise<number> {
  return rate(events, async () => {
    const totals = new UsageTotals();
    const consumer = await bare.consumers.get('EV_USAGE', {});
    const messages = await consumer.consume({ max_messages: READ_AHEAD });
    for await (const message of messages) {
      for (const record of (JSON.parse(message.string()) as { data: UsageRecordedV2 }).data.records) totals.apply(record);
      if (totals.count === events) break;
    }
    await consumer.delete();
  });
}

function fold(totals: UsageTotals, events: readonly RecordedEvent[], limit: number): void {
  for (const event of events) if (totals.count < limit) for (const record of (event.data as UsageRecordedV2).records) totals.apply(record);
}

function ourTail(log: NatsEventLog, events: number): Promise<number> {
  return rate(events, async () => {
    const totals = new UsageTotals();
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const subscription = await log.tail('EV_USAGE', 1, (batch) => {
      fold(totals, batch, events);
      if (totals.count === events) finish();
    });
    await finished;
    await subscription.close();
  });
}

function ourRebuild(log: NatsEventLog, events: number): Promise<number> {
  return rate(events, async () => {
    const totals = new UsageTotals();
    for await (const batch of log.read('EV_USAGE', { toSequence: events })) fold(totals, batch, events);
    if (totals.count !== events) throw new Error(`read ${totals.count} of ${events} events`);
  });
}

interface BenchServer {
  readonly url: string;
  close(): Promise<void>;
}

async function startServer(): Promise<BenchServer> {
  const { path } = await ensureRuntime('nats-server');
  const folder = await mkdtemp(join(tmpdir(), 'penstock-bench-'));
  const port = await freePort();
  const output = openSync(join(folder, 'server.log'), 'a');
  const child = spawn(path, ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', join(folder, 'data')], { stdio: ['ignore', output, output] });
  closeSync(output);
  const url = `nats://127.0.0.1:${port}`;
  await untilAnswering(url, child);
  return {
    url,
    close: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const START_TRIES_MAX = 200;
const START_WAIT_MS = 50;

async function untilAnswering(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < START_TRIES_MAX && child.exitCode === null; attempt += 1) {
    const link = await connectNats({ url, name: 'bench-probe' }).catch(() => undefined);
    if (link !== undefined) return link.close();
    await new Promise((resolve) => setTimeout(resolve, START_WAIT_MS));
  }
  child.kill('SIGKILL');
  throw new Error('the NATS server for the benchmark did not start');
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

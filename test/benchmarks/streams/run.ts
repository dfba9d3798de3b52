import { setTimeout as pause } from 'node:timers/promises';
import type { Run } from '../../harness.js';
import { startBenchWorld, type BenchWorld } from '../data-plane/bench-world.js';
import { closedLoop, openLoop, streams, type LoadRequest, type LoadResult, type Target } from '../data-plane/load-client.js';
import type { RunningTarget } from '../data-plane/peers.js';
import { median, quantile, shuffled, spread } from '../data-plane/statistics.js';

const ROUNDS = 5;
const PEERS = ['nginx', 'envoy', 'portkey'] as const;
const SETTLE_MS = 300;
/** A service that runs for months is measured as it is after its first minute. */
const WARM_UP = { requests: 5_000, concurrency: 64 };
/** And not as it is after a while with nothing to do, which the measurements of the others are. */
const LEAD_IN = { requests: 500, concurrency: 64 };
/** Streams at once, tokens a second of each, and tokens of each: long enough that opening them is a small part. */
const MAIN = { count: 200, tokensPerSecond: 50, tokens: 150, openMs: 1_000 };
/** How cost grows: the same for more streams, for those that keep up. Engine and client share a core, which bounds the sum of tokens. */
const CURVE = [{ count: 1_000, tokensPerSecond: 20, tokens: 60, openMs: 2_000 }, { count: 5_000, tokensPerSecond: 2, tokens: 16, openMs: 6_000 }];
const CURVE_TARGETS: readonly string[] = ['penstock', 'nginx'];
/** Short streams, for which a gateway's own time decides over the time to their first token. */
const SHORT = { tokens: 4, tokensPerSecond: 1_000 };
const KNEE_PROBE = { requests: 1_500, concurrency: 24 };
/** A loop that is busier than this has reached its knee. */
const KNEE_SHARE = 0.8;
const OVERLOAD_SECONDS = 6;
/** What an overloaded gateway answers to what it does not take. */
const SHED_STATUSES = ['429', '503'];
const TTFT_P99_MS_MAX = 1_000;

const streamed = (tokens: number, tokensPerSecond: number): LoadRequest => ({
  path: '/v1/chat/completions',
  body: JSON.stringify({ model: 'bench-model', messages: [{ role: 'user', content: 'Count to a hundred, one number after the other.' }], max_tokens: tokens, seed: tokensPerSecond, stream: true }),
});

interface Measured {
  readonly cpuPerChunk: number;
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly errors: number;
  readonly bytesPerStream: number;
}

/** CPU for each token of many streams at once, what an open stream takes, and what happens beyond the knee. */
export const run: Run = async ({ seed, say, args }) => {
  const isQuick = args.includes('--quick');
  const world = await startBenchWorld(isQuick ? ['nginx', 'envoy'] : PEERS, say);
  try {
    const direct: Target = { name: 'direct', port: world.enginePort, headers: {}, model: 'bench-model' };
    for (const target of world.targets) await closedLoop(target, streamed(20, 1_000), WARM_UP);
    const table = new Map<string, Measured[]>();
    for (let round = 0; round < (isQuick ? 2 : ROUNDS); round += 1) {
      say(`round ${round + 1} of ${isQuick ? 2 : ROUNDS}`);
      for (const target of shuffled([direct, ...world.targets], seed + round)) note(table, target.name, await measure(target, MAIN, seed + round));
    }
    const curve: Record<string, Measured> = {};
    for (const name of CURVE_TARGETS) curve[`${name} ${MAIN.count} x ${MAIN.tokensPerSecond}/s`] = middleOf(table.get(name) ?? []);
    for (const load of CURVE) {
      for (const target of world.targets.filter(({ name }) => CURVE_TARGETS.includes(name))) {
        say(`${load.count} streams over ${target.name}`);
        curve[`${target.name} ${load.count} x ${load.tokensPerSecond}/s`] = await measure(target, load, seed);
      }
    }
    return report(table, curve, await overload(world, seed, say));
  } finally {
    await world.close();
  }
};

/** Each figure's median. */
function middleOf(rows: readonly Measured[]): Measured {
  const of = (read: (row: Measured) => number): number => median(rows.map(read));
  return { cpuPerChunk: of((row) => row.cpuPerChunk), ttftP50Ms: of((row) => row.ttftP50Ms), ttftP99Ms: of((row) => row.ttftP99Ms), bytesPerStream: of((row) => row.bytesPerStream), errors: 0 };
}

function note(table: Map<string, Measured[]>, name: string, measured: Measured): void {
  table.set(name, [...(table.get(name) ?? []), measured]);
}

async function measure(target: Target | RunningTarget, load: typeof MAIN, seed: number): Promise<Measured> {
  const process = 'process' in target ? target.process : undefined;
  if (process !== undefined) await closedLoop(target, streamed(20, 1_000), LEAD_IN);
  await pause(SETTLE_MS);
  const cpuBefore = process?.cpuMicroseconds() ?? 0;
  const memoryBefore = process?.memoryBytes() ?? 0;
  let memoryOpen = memoryBefore;
  const result = await streams(target, streamed(load.tokens, load.tokensPerSecond), { count: load.count, openMs: load.openMs, seed, onOpen: () => (memoryOpen = process?.memoryBytes() ?? 0) });
  await pause(SETTLE_MS);
  const cpu = (process?.cpuMicroseconds() ?? 0) - cpuBefore;
  const missing = load.count * load.tokens - result.chunks;
  return {
    cpuPerChunk: cpu / Math.max(1, result.chunks), ttftP50Ms: quantile(result.firstByteMs, 0.5), ttftP99Ms: quantile(result.firstByteMs, 0.99),
    // A stream that lacks a token is as wrong as one that broke.
    errors: result.errors + (missing === 0 ? 0 : 1), bytesPerStream: Math.max(0, memoryOpen - memoryBefore) / load.count,
  };
}

interface Overload {
  readonly kneePerSecond: number;
  readonly offeredPerSecond: number;
  readonly admitted: number;
  readonly shed: number;
  readonly errors: number;
  /** Answers by status that is not 200. */
  readonly failures: Readonly<Record<string, number>>;
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  /** CPU that the gateway got, in cores, and how busy the loop of the client was: where others have the cores, or the client has none left, the times say nothing of the gateway. */
  readonly gatewayCores: number;
  readonly clientUtilisation: number;
}

/** Twice as many requests a second as one core has time for. */
async function overload(world: BenchWorld, seed: number, say: (text: string) => void): Promise<Overload | undefined> {
  const target = world.targets.find(({ name }) => name === 'penstock');
  if (target === undefined) return undefined;
  const request = streamed(SHORT.tokens, SHORT.tokensPerSecond);
  const before = target.process.cpuMicroseconds();
  const probe = await closedLoop(target, request, KNEE_PROBE);
  const kneePerSecond = (KNEE_SHARE * 1e6) / ((target.process.cpuMicroseconds() - before) / probe.requests);
  const offeredPerSecond = Math.round(2 * kneePerSecond);
  say(`knee at ${Math.round(kneePerSecond)} short streams a second; offering ${offeredPerSecond}`);
  const cpuBefore = target.process.cpuMicroseconds();
  const loopBefore = performance.eventLoopUtilization();
  const startMs = performance.now();
  const result: LoadResult = await openLoop(target, request, { perSecond: offeredPerSecond, seconds: OVERLOAD_SECONDS, seed });
  const gatewayCores = (target.process.cpuMicroseconds() - cpuBefore) / 1_000 / (performance.now() - startMs);
  const clientUtilisation = performance.eventLoopUtilization(loopBefore).utilization;
  const shed = SHED_STATUSES.reduce((sum, status) => sum + (result.failures[status] ?? 0), 0);
  return { kneePerSecond: Math.round(kneePerSecond), offeredPerSecond, admitted: result.totalMs.length, shed, errors: result.errors - shed, ttftP50Ms: quantile(result.firstByteMs, 0.5), ttftP99Ms: quantile(result.firstByteMs, 0.99), gatewayCores: Math.round(gatewayCores * 100) / 100, clientUtilisation: Math.round(clientUtilisation * 100) / 100, failures: result.failures };
}

function report(table: ReadonlyMap<string, Measured[]>, curve: Readonly<Record<string, Measured>>, over: Overload | undefined): Awaited<ReturnType<Run>> {
  const of = (name: string, read: (measured: Measured) => number): number | null => {
    const rows = table.get(name);
    return rows === undefined ? null : median(rows.map(read));
  };
  const cpuRatio = (name: string): number | null => divided(of('penstock', (row) => row.cpuPerChunk), of(name, (row) => row.cpuPerChunk));
  const direct = of('direct', (row) => row.ttftP50Ms) ?? 0;
  const added = (name: string): number | null => {
    const value = of(name, (row) => row.ttftP50Ms);
    return value === null ? null : value - direct;
  };
  const memory = Object.entries(curve).filter(([name]) => name.startsWith('penstock')).map(([, measured]) => measured.bytesPerStream);
  const figures = {
    cpu_per_token_vs_nginx: cpuRatio('nginx'),
    cpu_per_token_vs_envoy: cpuRatio('envoy'),
    cpu_per_token_vs_portkey: cpuRatio('portkey'),
    ttft_added_vs_nginx: divided(added('penstock'), added('nginx')),
    bytes_per_stream: Math.round(memory.at(-1) ?? 0),
    ttft_p99_at_twice_knee_ms: over === undefined ? null : Math.round(over.ttftP99Ms),
    errors: [...(table.get('penstock') ?? []), ...Object.entries(curve).flatMap(([name, row]) => (name.startsWith('penstock') ? [row] : []))].reduce((sum, { errors }) => sum + errors, over?.errors ?? 0),
  };
  const within = (value: number | null, limit: number): boolean => value !== null && value <= limit;
  const vsPortkey = divided(added('penstock'), added('portkey'));
  const pass = within(figures.cpu_per_token_vs_nginx, 2.4) && within(figures.cpu_per_token_vs_envoy, 1.4) && within(figures.cpu_per_token_vs_portkey, 0.65) && within(figures.ttft_added_vs_nginx, 4)
    && within(vsPortkey, 0.1) && figures.bytes_per_stream <= 64 * 1_024 && within(figures.ttft_p99_at_twice_knee_ms, TTFT_P99_MS_MAX) && figures.errors === 0;
  const detail = Object.fromEntries([...table].map(([name, rows]) => [name, { cpu_us_per_chunk: spread(rows.map((row) => row.cpuPerChunk)), ttft_p50_ms: spread(rows.map((row) => row.ttftP50Ms)), ttft_p99_ms: spread(rows.map((row) => row.ttftP99Ms)), errors: rows.reduce((sum, { errors }) => sum + errors, 0) }]));
  return { figures, pass, detail: { load: MAIN, targets: detail, ttft_added_vs_portkey: vsPortkey, curve, overload: over } };
}

function divided(value: number | null, by: number | null): number | null {
  return value === null || by === null || by <= 0 ? null : Math.round((value / by) * 10_000) / 10_000;
}

import { setTimeout as pause } from 'node:timers/promises';
import type { Run } from '../../harness.js';
import { startBenchWorld, type BenchWorld } from '../data-plane/bench-world.js';
import { peerNames, type PeerName } from '../data-plane/install-peers.js';
import { closedLoop, openLoop, type LoadRequest, type LoadResult, type Target } from '../data-plane/load-client.js';
import type { RunningTarget } from '../data-plane/peers.js';
import { median, quantile, shuffled, spread } from '../data-plane/statistics.js';
import { measureKeys } from './key-memory.js';

const ROUNDS = 5;
/** Connections that each carry one request after the other: enough that a process has always some work before it. */
const CONCURRENCY = 64;
/** So few that processes wait for each other between requests, which costs all of them more. */
const FEW = 16;
/** A burst long enough that what it ends with does not count. */
const REQUESTS = 12_000;
/** So many go ahead of it: a process that had nothing to do for a while costs more until it is warm, its connections above all. */
const LEAD_IN = 6_000;
/** LiteLLM takes a hundred times as long; fewer requests say the same about CPU per request. */
const SLOW_PEER_REQUESTS = 150;
const SLOW_PEER_LEAD_IN = 50;
/** A service that runs for months is measured as it is after its first minute: compiled, its connections open. */
const WARM_UP_REQUESTS = 20_000;
const LATENCY_LOAD = { perSecond: 200, seconds: 5 };
const LARGE_PROMPT_CHARACTERS = 100 * 1_024;
const STREAM_TOKENS = 20;
const SETTLE_MS = 300;

const text = 'Write one sentence about the sea, and one about the mountains. ';
const chat = (prompt: string, stream = false): LoadRequest => ({ path: '/v1/chat/completions', body: JSON.stringify({ model: 'bench-model', messages: [{ role: 'user', content: prompt }], max_tokens: stream ? STREAM_TOKENS : 64, ...(stream ? { stream: true, seed: 1_000 } : {}) }) });
const loads: Readonly<Record<string, { readonly request: LoadRequest; readonly share: number; readonly concurrency?: number }>> = {
  small: { request: chat(text), share: 1 },
  small_over_few: { request: chat(text), share: 1, concurrency: FEW },
  streamed: { request: chat(text, true), share: 0.1 },
  large: { request: chat(text.repeat(Math.ceil(LARGE_PROMPT_CHARACTERS / text.length))), share: 0.2 },
  embeddings: { request: { path: '/v1/embeddings', body: JSON.stringify({ model: 'bench-model', input: text }) }, share: 0.25 },
};
/** A peer that is not made for a load is left out of it. */
const LOADS_OF_SLOW_PEERS: readonly string[] = ['small'];

interface Measured {
  readonly cpuMicroseconds: number;
  readonly result: LoadResult;
}

/** CPU per request and added latency of the whole request path against proxies of the same machine, in interleaved rounds. */
export const run: Run = async ({ seed, say, args }) => {
  const rounds = args.includes('--quick') ? 2 : ROUNDS;
  const peers = args.includes('--quick') ? (['nginx', 'envoy'] as const) : peerNames;
  const world = await startBenchWorld(peers, say);
  try {
    for (const target of world.targets) await warmUp(target);
    const cpu = await measureLoads(world, rounds, seed, say);
    const latency = await measureLatency(world, rounds, seed, say);
    return report(cpu, latency, await measureKeys());
  } finally {
    await world.close();
  }
};

const isSlow = (name: string): boolean => name === 'litellm';

async function warmUp(target: RunningTarget): Promise<void> {
  for (const { request } of Object.values(loads)) await closedLoop(target, request, { requests: isSlow(target.name) ? 20 : Math.round(WARM_UP_REQUESTS * (request === loads['small']?.request ? 1 : 1 / 20)), concurrency: CONCURRENCY });
}

/** By load and target, one entry for each round. */
type Table = Map<string, Measured[]>;

async function measureLoads(world: BenchWorld, rounds: number, seed: number, say: (text: string) => void): Promise<Table> {
  const table: Table = new Map();
  for (const [name, { request, share, concurrency = CONCURRENCY }] of Object.entries(loads)) {
    say(`load ${name}, ${rounds} rounds`);
    for (let round = 0; round < rounds; round += 1) {
      for (const target of shuffled(world.targets, seed + round)) {
        if (isSlow(target.name) && !LOADS_OF_SLOW_PEERS.includes(name)) continue;
        const requests = isSlow(target.name) ? SLOW_PEER_REQUESTS : Math.round(REQUESTS * share);
        const leadIn = isSlow(target.name) ? SLOW_PEER_LEAD_IN : Math.round(LEAD_IN * share);
        let before = target.process.cpuMicroseconds();
        const result = await closedLoop(target, request, { requests, concurrency, leadIn, onLedIn: () => (before = target.process.cpuMicroseconds()) });
        // What a request leaves to be done (usage, logs, traces) is part of its cost.
        await pause(SETTLE_MS);
        push(table, `${name} ${target.name}`, { cpuMicroseconds: (target.process.cpuMicroseconds() - before) / requests, result });
      }
    }
  }
  return table;
}

async function measureLatency(world: BenchWorld, rounds: number, seed: number, say: (text: string) => void): Promise<Map<string, LoadResult[]>> {
  const direct: Target = { name: 'direct', port: world.enginePort, headers: {}, model: 'bench-model' };
  const results = new Map<string, LoadResult[]>();
  const request = loads['small']?.request;
  if (request === undefined) return results;
  for (let round = 0; round < rounds; round += 1) {
    say(`latency, round ${round + 1} of ${rounds}`);
    for (const target of shuffled([direct, ...world.targets.filter(({ name }) => !isSlow(name))], seed + round)) {
      const result = await openLoop(target, request, { ...LATENCY_LOAD, seed: seed + round });
      results.set(target.name, [...(results.get(target.name) ?? []), result]);
    }
  }
  return results;
}

function push(table: Table, key: string, value: Measured): void {
  const list = table.get(key) ?? [];
  list.push(value);
  table.set(key, list);
}

function report(cpu: Table, latency: ReadonlyMap<string, LoadResult[]>, keys: unknown): Awaited<ReturnType<Run>> {
  const cpuOf = (load: string, name: string): number | null => {
    const rows = cpu.get(`${load} ${name}`);
    return rows === undefined || rows.some(({ result }) => result.errors > 0) ? null : median(rows.map(({ cpuMicroseconds }) => cpuMicroseconds));
  };
  const ratio = (load: string, name: PeerName): number | null => divided(cpuOf(load, 'penstock'), cpuOf(load, name));
  const p50 = (name: string): number => median((latency.get(name) ?? []).map(({ totalMs }) => quantile(totalMs, 0.5)));
  const added = (name: string): number => p50(name) - p50('direct');
  const own = [...cpu].filter(([key]) => key.endsWith(' penstock') && !key.startsWith('embeddings')).flatMap(([, rows]) => rows.map(({ result }) => result));
  const figures = {
    cpu_vs_nginx: ratio('small', 'nginx'),
    cpu_vs_envoy: ratio('small', 'envoy'),
    cpu_vs_portkey: ratio('small', 'portkey'),
    cpu_vs_litellm: ratio('small', 'litellm'),
    added_p50_vs_nginx: divided(added('penstock'), added('nginx')),
    embeddings_94k_vs_nginx: ratio('embeddings', 'nginx'),
    errors: [...own, ...(latency.get('penstock') ?? [])].reduce((sum, result) => sum + result.errors, 0),
  };
  const within = (value: number | null, limit: number): boolean => value !== null && value <= limit;
  const pass = within(figures.cpu_vs_nginx, 4.5) && within(figures.cpu_vs_envoy, 1.5) && within(figures.cpu_vs_portkey, 1 / 5) && within(figures.cpu_vs_litellm, 1 / 100)
    && within(figures.added_p50_vs_nginx, 2) && within(figures.embeddings_94k_vs_nginx, 2.5) && figures.errors === 0;
  const cpuDetail = Object.fromEntries([...cpu].map(([key, rows]) => [key, { cpu_us_per_request: spread(rows.map((row) => row.cpuMicroseconds)), p50_ms: spread(rows.map(({ result }) => quantile(result.totalMs, 0.5))), p99_ms: spread(rows.map(({ result }) => quantile(result.totalMs, 0.99))), errors: rows.reduce((sum, { result }) => sum + result.errors, 0), failures: rows.map(({ result }) => result.failures).find((failures) => Object.keys(failures).length > 0) }]));
  const latencyDetail = Object.fromEntries([...latency].map(([name, rows]) => [name, { p50_ms: spread(rows.map(({ totalMs }) => quantile(totalMs, 0.5))), p99_ms: spread(rows.map(({ totalMs }) => quantile(totalMs, 0.99))), errors: rows.reduce((sum, { errors }) => sum + errors, 0) }]));
  const more = Object.fromEntries(['small_over_few', 'streamed', 'large'].flatMap((load) => (['nginx', 'envoy', 'portkey'] as const).map((name) => [`${load}_cpu_vs_${name}`, ratio(load, name)])));
  return { figures, pass, detail: { load: { concurrency: CONCURRENCY, concurrency_over_few: FEW, requests: REQUESTS, lead_in: LEAD_IN, closed: true, latency: LATENCY_LOAD }, ratios: more, cpu: cpuDetail, latency: latencyDetail, keys } };
}

function divided(value: number | null, by: number | null): number | null {
  return value === null || by === null || by <= 0 ? null : Math.round((value / by) * 10_000) / 10_000;
}

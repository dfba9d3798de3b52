import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { UsageRecord } from '@penstock/contract-events';
import { usageRecordsOf } from '@penstock/domain-usage';
import { connectNats, NatsEventLog } from '@penstock/infra-nats';
import type { ServiceName } from '@penstock/infra-composition';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { until } from '../../platform/eventually.js';
import { Installation } from '../../platform/installation.js';
import { compareUsage, readTruth } from './ledger.js';
import { Load, type Outcome } from './load.js';

const MODEL = 'sim-drill';
const CLIENTS = 8;
const REQUESTS_PER_PHASE = 40;
const PHASE_WAIT_MS = 60_000;
const READY_WAIT_MS = 60_000;
const SETTLE_WAIT_MS = 60_000;
const TOKENS_PER_SECOND = 200;

/** Everything that only decides: while these are down, warm models must go on. */
const CONTROL_SERVICES: readonly ServiceName[] = ['registry', 'scheduler', 'autoscaler', 'metering', 'batch'];
/** A kill of the gateway is felt by the requests in it; every other kill must not be felt at all. */
const FELT_PHASES = new Set(['kill gateway']);

/** kill -9 of every service in turn, of NATS and of PostgreSQL, under load; then the money and the projections are compared. */
export const run: Run = async ({ seed, say }) => {
  const root = repositoryRoot(import.meta.dirname);
  const installation = await Installation.start({ root, environment: { LOG_LEVEL: 'info' } });
  let kept = false;
  try {
    const ledgerPath = join(installation.instance.dataDir, 'agent', 'truth.jsonl');
    const report = await drill(installation, ledgerPath, say, seed);
    kept = !report.pass;
    if (kept) say(`logs are kept in ${installation.folder}`);
    return report;
  } catch (error) {
    kept = true;
    say(`logs are kept in ${installation.folder}`);
    throw error;
  } finally {
    await installation.close(kept);
  }
};

async function drill(installation: Installation, ledgerPath: string, say: (text: string) => void, seed: number): ReturnType<Run> {
  const agent = installation.service('agent');
  await agent.stop();
  agent.withSetting('ENGINE_SIM_LEDGER', ledgerPath);
  await agent.start();
  await deploySimulatedModel(installation);
  const { key } = (await installation.admin('POST', '/admin/v1/keys', { name: 'drill' })) as { key: string };
  const load = new Load(`${installation.url}/v1`, key, MODEL, CLIENTS);
  await mustSucceed(load, 'warm-up');
  const kills = await killEverything(installation, load, say, seed);
  await controlPlaneDown(installation, load, say);
  load.enter('calm');
  await mustSucceed(load, 'calm');
  await load.stop();
  return judge(installation, ledgerPath, load.outcomes, kills, say);
}

async function deploySimulatedModel(installation: Installation): Promise<void> {
  await installation.admin('POST', '/v1/models/deploy', {
    model_name: MODEL,
    model_artifact: 'sim://',
    framework: 'engine-sim',
    hardware: { min_replicas: 2, max_replicas: 2 },
    serving: { slots_per_replica: 16, context_tokens: 4_096 },
    engine_options: { tokens_per_second: TOKENS_PER_SECOND },
  });
  await until('two ready replicas', READY_WAIT_MS, async () => {
    const fleet = (await installation.admin('GET', '/admin/v1/fleet')) as { replicas: { phase: string }[] };
    return fleet.replicas.filter((replica) => replica.phase === 'ready').length === 2 ? true : undefined;
  });
}

/** The order differs from run to run by the seed. */
async function killEverything(installation: Installation, load: Load, say: (text: string) => void, seed: number): Promise<number> {
  const targets = shuffled([...installation.services.keys(), 'nats', 'postgres'] as const, seed);
  for (const target of targets) {
    load.enter(`kill ${target}`);
    say(`kill -9 ${target}`);
    if (target === 'nats' || target === 'postgres') {
      await installation.servers.kill(target);
      await someTraffic(load);
      await installation.servers.restart(target);
    } else {
      const service = installation.service(target);
      await service.kill();
      if (target !== 'gateway') await someTraffic(load);
      await service.start();
    }
    await mustSucceed(load, `after the kill of ${target}`);
  }
  return targets.length;
}

/** With everything that decides, and both databases, down at once. */
async function controlPlaneDown(installation: Installation, load: Load, say: (text: string) => void): Promise<void> {
  load.enter('control plane down');
  say('kill -9 of every control service, PostgreSQL and ClickHouse at once');
  await Promise.all([...CONTROL_SERVICES.map((name) => installation.service(name).kill()), installation.servers.kill('postgres'), installation.servers.kill('clickhouse')]);
  await mustSucceed(load, 'with the control plane down');
  await Promise.all([installation.servers.restart('postgres'), installation.servers.restart('clickhouse')]);
  for (const name of CONTROL_SERVICES) await installation.service(name).start();
}

/** Lets traffic go on while something is down; how much succeeds is judged at the end. */
async function someTraffic(load: Load): Promise<void> {
  await load.untilSucceeded(REQUESTS_PER_PHASE / 2, PHASE_WAIT_MS / 4);
}

async function mustSucceed(load: Load, when: string): Promise<void> {
  if (!(await load.untilSucceeded(REQUESTS_PER_PHASE, PHASE_WAIT_MS))) {
    throw new Error(`fewer than ${REQUESTS_PER_PHASE} requests succeeded ${when}; last error: ${load.outcomes.filter((outcome) => !outcome.ok).at(-1)?.error ?? 'none'}`);
  }
}

async function judge(installation: Installation, ledgerPath: string, outcomes: readonly Outcome[], kills: number, say: (text: string) => void): ReturnType<Run> {
  const truth = await endedTruth(ledgerPath);
  const events = await settledUsage(installation, [...truth.keys()]);
  const comparison = compareUsage(truth, events);
  const counted = await countedInClickhouse(installation, new Set(events.map((event) => event.requestId)).size);
  const verification = (await installation.admin('POST', '/admin/v1/replay/verify', {})) as { identical: boolean; projections: { name: string; identical: boolean; rows: number }[]; unavailable: string[] };
  const recorded = new Map(events.map((event) => [event.requestId, event]));
  const unbilled = outcomes.filter((outcome) => outcome.ok && recorded.get(outcome.requestId ?? '')?.completionTokens !== outcome.completionTokens);
  const failures = outcomes.filter((outcome) => !outcome.ok);
  const warmFailures = failures.filter((outcome) => !FELT_PHASES.has(outcome.phase));
  for (const failure of warmFailures.slice(0, 10)) say(`failed in "${failure.phase}": ${failure.error ?? ''}`);
  const sums = events.reduce((total, event) => ({ prompt: total.prompt + event.promptTokens, completion: total.completion + event.completionTokens }), { prompt: 0, completion: 0 });
  const lost = comparison.lost.length + unbilled.length;
  const doubled = comparison.doubled.length + Math.max(0, counted.requests - recorded.size) + (counted.completionTokens > sums.completion ? 1 : 0);
  const figures = {
    kills,
    requests: outcomes.length,
    lost,
    doubled,
    warm_request_failures: warmFailures.length,
    projections_identical: verification.identical && verification.unavailable.length === 0,
    wrong: comparison.wrong.length,
  };
  const pass = lost === 0 && doubled === 0 && comparison.wrong.length === 0 && warmFailures.length === 0 && figures.projections_identical && counted.requests === recorded.size && counted.completionTokens === sums.completion && counted.promptTokens === sums.prompt;
  if (!pass) await writeFile(join(installation.folder, 'comparison.json'), JSON.stringify({ comparison, counted, sums, verification, failures }, undefined, 2));
  const byPhase = Object.fromEntries([...new Set(outcomes.map((outcome) => outcome.phase))].map((phase) => [phase, { ok: outcomes.filter((outcome) => outcome.phase === phase && outcome.ok).length, failed: failures.filter((outcome) => outcome.phase === phase).length }]));
  return { figures, pass, detail: { engine_requests: comparison.ended, completed: comparison.completed, usage_events: events.length, clickhouse: counted, byPhase, projections: verification.projections.map((projection) => ({ name: projection.name, rows: projection.rows, identical: projection.identical })) } };
}

/** The engines' ledger, once every request in it has ended: an engine writes that a moment after its client has the last byte. */
async function endedTruth(ledgerPath: string): Promise<ReturnType<typeof readTruth>> {
  return until('the end of every request in the ledger', SETTLE_WAIT_MS / 10, async () => {
    const truth = readTruth(ledgerPath);
    return [...truth.values()].every(({ endings }) => endings.length > 0) ? truth : undefined;
  }).catch(() => readTruth(ledgerPath));
}

/** Every usage event, once each request that reached an engine has one and no more arrive. */
async function settledUsage(installation: Installation, requestIds: readonly string[]): Promise<UsageRecord[]> {
  const link = await connectNats({ url: installation.settings.natsUrl, name: 'drill' });
  try {
    const log = new NatsEventLog(link, { consumerName: 'drill' });
    const readAll = async (): Promise<UsageRecord[]> => {
      const events: UsageRecord[] = [];
      for await (const batch of log.read('EV_USAGE')) events.push(...batch.flatMap(usageRecordsOf));
      return events;
    };
    await until('a usage event for each request', SETTLE_WAIT_MS, async () => {
      const known = new Set((await readAll()).map((event) => event.requestId));
      return requestIds.every((id) => known.has(id)) ? true : undefined;
    }).catch(() => undefined);
    return await readAll();
  } finally {
    await link.close();
  }
}

async function countedInClickhouse(installation: Installation, requests: number): Promise<{ requests: number; promptTokens: number; completionTokens: number }> {
  const read = async (): Promise<{ requests: number; promptTokens: number; completionTokens: number }> => {
    const start = Math.floor(Date.now() / 1_000) - 86_400;
    const page = (await installation.admin('GET', `/v1/organization/usage/completions?start_time=${start}&bucket_width=1d&limit=3`)) as { data: { results: { num_model_requests: number; input_tokens: number; output_tokens: number }[] }[] };
    const results = page.data.flatMap((bucket) => bucket.results);
    return results.reduce((sum, result) => ({ requests: sum.requests + result.num_model_requests, promptTokens: sum.promptTokens + result.input_tokens, completionTokens: sum.completionTokens + result.output_tokens }), { requests: 0, promptTokens: 0, completionTokens: 0 });
  };
  return until('all usage in ClickHouse', SETTLE_WAIT_MS, async () => {
    const counted = await read();
    return counted.requests >= requests ? counted : undefined;
  }).catch(read);
}

function shuffled<Item>(items: readonly Item[], seed: number): Item[] {
  const result = [...items];
  let state = seed >>> 0 || 1;
  for (let index = result.length - 1; index > 0; index -= 1) {
    // A linear congruential step (Numerical Recipes' constants) is random enough to vary an order.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = state % (index + 1);
    [result[index], result[other]] = [result[other] as Item, result[index] as Item];
  }
  return result;
}

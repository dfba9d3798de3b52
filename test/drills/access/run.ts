import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findFreePort } from '@penstock/infra-runtimes';
import { serviceEnvironments } from '@penstock/infra-composition';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { until } from '../../platform/eventually.js';
import { Installation } from '../../platform/installation.js';
import { ServiceProcess } from '../../platform/service-process.js';
import { readTruth } from '../restart/ledger.js';
import { GatewayCaller } from './gateway-caller.js';

const MODEL = 'sim-access';
const GATEWAYS = 4;
const READY_WAIT_MS = 60_000;
/** Slow, so that a kill finds requests in the middle. */
const TOKENS_PER_SECOND = 10;
const KILL_AFTER_MS = 500;
/** Parallel requests at a limit that has room for a few of them, and what each may answer. */
const LIMITED_REQUESTS = 50;
const TOKENS_PER_MINUTE = 2_000;
const ANSWER_TOKENS = 20;
const KEYED_REQUESTS = 60;
const SAME_KEY_CALLS = 6;
const ORPHANS = 8;
const ORPHAN_TOKENS = 600;
const ORPHAN_WAIT_MS = 60_000;
const REVOCATIONS = 60;
const REVOCATION_P99_MS_MAX = 1_000;

/** Keys, limits and idempotency over four gateways: revocation, quota under a burst, one execution per key also when a gateway dies. */
export const run: Run = async ({ say }) => {
  const root = repositoryRoot(import.meta.dirname);
  const installation = await Installation.start({ root, environment: { LOG_LEVEL: 'info' } });
  const more: ServiceProcess[] = [];
  let kept = true;
  try {
    const ledgerPath = join(installation.instance.dataDir, 'agent', 'truth.jsonl');
    await deploy(installation, ledgerPath);
    for (let count = 1; count < GATEWAYS; count += 1) more.push(await startGateway(installation, root, count));
    const gateways = [installation.url, ...more.map(({ url }) => url)].map((url) => new GatewayCaller(url, MODEL));
    const revocation = await revoke(installation, gateways, say);
    const quota = await burst(installation, gateways, say);
    const keyed = await sameKeys(installation, gateways, ledgerPath, say);
    const orphaned = await orphans(installation, gateways, more, say);
    const figures = { revocation_p99_ms: revocation.p99Ms, quota_overshoot_tokens: quota.overshoot, quota_admitted: quota.admitted, double_executions: keyed.double, double_billed_after_crash: orphaned.doubleBilled, crashed_completed: orphaned.completed };
    const pass = revocation.p99Ms <= REVOCATION_P99_MS_MAX && quota.overshoot === 0 && quota.admitted > 0 && keyed.double === 0 && orphaned.doubleBilled === 0 && orphaned.completed === ORPHANS && orphaned.crashed > 0;
    kept = !pass;
    return { figures, pass, detail: { gateways: GATEWAYS, revocation, quota, keyed, orphaned } };
  } finally {
    if (kept) say(`logs are kept in ${installation.folder}`);
    for (const gateway of more) await gateway.stop();
    await installation.close(kept);
  }
};

async function deploy(installation: Installation, ledgerPath: string): Promise<void> {
  const agent = installation.service('agent');
  await agent.stop();
  agent.withSetting('ENGINE_SIM_LEDGER', ledgerPath);
  await agent.start();
  await installation.admin('POST', '/v1/models/deploy', {
    model_name: MODEL, model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: 1, max_replicas: 1 }, serving: { slots_per_replica: 64, context_tokens: 4_096, queue_max: 1_000 }, engine_options: { tokens_per_second: TOKENS_PER_SECOND },
  });
  await until('a ready replica', READY_WAIT_MS, async () => {
    const fleet = (await installation.admin('GET', '/admin/v1/fleet')) as { replicas: { phase: string }[] };
    return fleet.replicas.some((replica) => replica.phase === 'ready') ? true : undefined;
  });
}

async function startGateway(installation: Installation, root: string, number: number): Promise<ServiceProcess> {
  const { gateway } = serviceEnvironments(installation.settings);
  const environment = Object.fromEntries(Object.entries(gateway).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const process = new ServiceProcess('gateway', root, { ...environment, DATA_DIR: join(installation.instance.dataDir, `gateway-${number}`) }, await findFreePort(), installation.instance.path('logs', `gateway-${number}.log`));
  await process.start();
  return process;
}

const newKey = async (installation: Installation, name: string) => (await installation.admin('POST', '/admin/v1/keys', { name })) as { id: string; key: string };

/** From the answer to the revocation until every gateway refuses the key. */
async function revoke(installation: Installation, gateways: readonly GatewayCaller[], say: (text: string) => void): Promise<{ p99Ms: number; medianMs: number; samples: number }> {
  const waits: number[] = [];
  for (let round = 0; round < REVOCATIONS; round += 1) {
    const { id, key } = await newKey(installation, `revoked-${round}`);
    await Promise.all(gateways.map((gateway) => until('the key everywhere', READY_WAIT_MS, async () => ((await gateway.knows(key)) ? true : undefined))));
    await installation.admin('DELETE', `/admin/v1/keys/${id}`);
    const revokedAt = performance.now();
    await Promise.all(gateways.map(async (gateway) => {
      while (await gateway.knows(key)) await pause(1);
      waits.push(performance.now() - revokedAt);
    }));
  }
  waits.sort((one, other) => one - other);
  const p99Ms = Math.round(waits[Math.ceil(waits.length * 0.99) - 1] ?? 0);
  say(`revocation reached ${gateways.length} gateways within ${p99Ms} ms at p99`);
  return { p99Ms, medianMs: Math.round(waits[Math.floor(waits.length / 2)] ?? 0), samples: waits.length };
}

async function burst(installation: Installation, gateways: readonly GatewayCaller[], say: (text: string) => void): Promise<{ overshoot: number; used: number; admitted: number; refused: number; other: number }> {
  const { id, key } = await newKey(installation, 'limited');
  await installation.admin('POST', '/admin/v1/limits', { subject_id: id, tokens_per_minute: TOKENS_PER_MINUTE });
  await Promise.all(gateways.map((gateway) => until('the limit everywhere', READY_WAIT_MS, async () => ((await gateway.chat(key, 1)).limit === String(TOKENS_PER_MINUTE) ? true : undefined))));
  const before = gateways.reduce((sum, gateway) => sum + gateway.tokensOf(key), 0);
  const answers = await Promise.all(Array.from({ length: LIMITED_REQUESTS }, (_, index) => at(gateways, index).chat(key, ANSWER_TOKENS)));
  const used = gateways.reduce((sum, gateway) => sum + gateway.tokensOf(key), 0);
  const admitted = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ status }) => status === 429).length;
  say(`${admitted} of ${LIMITED_REQUESTS} requests fitted into ${TOKENS_PER_MINUTE} tokens, and used ${used - before}`);
  return { overshoot: Math.max(0, used - TOKENS_PER_MINUTE), used, admitted, refused, other: LIMITED_REQUESTS - admitted - refused };
}

async function sameKeys(installation: Installation, gateways: readonly GatewayCaller[], ledgerPath: string, say: (text: string) => void): Promise<{ double: number; executions: number; calls: number; differing: number }> {
  const { key } = await newKey(installation, 'idempotent');
  await Promise.all(gateways.map((gateway) => until('the key everywhere', READY_WAIT_MS, async () => ((await gateway.knows(key)) ? true : undefined))));
  const before = readTruth(ledgerPath).size;
  const answers = await Promise.all(Array.from({ length: KEYED_REQUESTS * SAME_KEY_CALLS }, (_, index) => at(gateways, index).chat(key, ANSWER_TOKENS, { 'idempotency-key': `drill-${Math.floor(index / SAME_KEY_CALLS)}` })));
  const failed = answers.filter(({ status }) => status !== 200);
  if (failed.length > 0) throw new Error(`${failed.length} keyed requests failed: ${failed[0]?.status} ${failed[0]?.text}`);
  const texts = Array.from({ length: KEYED_REQUESTS }, (_, number) => new Set(answers.slice(number * SAME_KEY_CALLS, (number + 1) * SAME_KEY_CALLS).map(({ text }) => text)));
  const executions = readTruth(ledgerPath).size - before;
  say(`${answers.length} requests with ${KEYED_REQUESTS} keys were carried out ${executions} times`);
  return { double: executions - KEYED_REQUESTS, executions, calls: answers.length, differing: texts.filter((each) => each.size !== 1).length };
}

/** A gateway is killed with keyed requests in it; whoever asks again at another one gets one answer, billed once. */
async function orphans(installation: Installation, gateways: readonly GatewayCaller[], processes: readonly ServiceProcess[], say: (text: string) => void): Promise<{ completed: number; doubleBilled: number; crashed: number; usage: { requests: number; tokens: number } }> {
  const { id, key } = await newKey(installation, 'orphaned');
  const victim = gateways.length - 1;
  await until('the key', READY_WAIT_MS, async () => ((await at(gateways, victim).knows(key)) ? true : undefined));
  const lost = Array.from({ length: ORPHANS }, (_, index) => at(gateways, victim).chat(key, ORPHAN_TOKENS, { 'idempotency-key': `orphan-${index}` }).catch(() => undefined));
  await pause(KILL_AFTER_MS);
  await processes[victim - 1]?.kill();
  const crashed = (await Promise.all(lost)).filter((answer) => answer?.status !== 200).length;
  const answers = await Promise.all(Array.from({ length: ORPHANS }, (_, index) => until('an answer after the crash', ORPHAN_WAIT_MS, async () => {
    const answer = await at(gateways, index % victim).chat(key, ORPHAN_TOKENS, { 'idempotency-key': `orphan-${index}` });
    return answer.status === 200 ? answer : undefined;
  })));
  await processes[victim - 1]?.start();
  const delivered = answers.reduce((sum, { text }) => sum + (JSON.parse(text) as { usage: { completion_tokens: number } }).usage.completion_tokens, 0);
  const start = Math.floor(Date.now() / 1_000) - 86_400;
  const counted = async () => {
    const page = (await installation.admin('GET', `/v1/organization/usage/completions?start_time=${start}&bucket_width=1d&limit=3&api_key_ids=${id}`)) as { data: { results: { num_model_requests: number; output_tokens: number }[] }[] };
    return page.data.flatMap(({ results }) => results).reduce((sum, result) => ({ requests: sum.requests + result.num_model_requests, tokens: sum.tokens + result.output_tokens }), { requests: 0, tokens: 0 });
  };
  const usage = await until('the usage of the crashed requests', ORPHAN_WAIT_MS, async () => {
    const found = await counted();
    return found.requests >= ORPHANS && found.tokens >= delivered ? found : undefined;
  }).catch(counted);
  say(`${answers.length} requests of a killed gateway were answered by others and billed ${usage.requests} times`);
  return { completed: answers.length, doubleBilled: Math.max(0, usage.requests - ORPHANS) + Math.max(0, usage.tokens - delivered), crashed, usage };
}

function at(gateways: readonly GatewayCaller[], index: number): GatewayCaller {
  const gateway = gateways[index % gateways.length];
  if (gateway === undefined) throw new RangeError('there is no gateway');
  return gateway;
}

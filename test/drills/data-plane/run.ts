import { ChatClient } from '../../platform/chat-client.js';
import { createTenant, deployModel } from '../../platform/drill-world.js';
import { Installation } from '../../platform/installation.js';
import { ScriptedEngine } from '../../platform/scripted-engine.js';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { blackout } from './blackout.js';
import { randomCancels } from './cancels.js';
import { disconnects } from './disconnects.js';
import { engineFaults } from './engine-faults.js';
import { holdings, leaked } from './leaks.js';
import { queueFull, slowReaders, startLoris } from './pressure.js';
import { retryStorm } from './retry-storm.js';
import { rollingRestart, ROLLING_REQUESTS } from './rolling.js';
import { check, CHUNK_GAP_TIMEOUT_MS, CLIENT_STALL_TIMEOUT_MS, FIRST_TOKEN_TIMEOUT_MS, MODEL, NARROW_MODEL, randomFrom, SIM_MODEL, TWIN_MODEL, type World } from './world.js';

const environment = {
  LOG_LEVEL: 'info',
  FIRST_TOKEN_TIMEOUT_MS: String(FIRST_TOKEN_TIMEOUT_MS),
  CHUNK_GAP_TIMEOUT_MS: String(CHUNK_GAP_TIMEOUT_MS),
  CLIENT_STALL_TIMEOUT_MS: String(CLIENT_STALL_TIMEOUT_MS),
  // An agent that is upgraded leaves its engines to the next one.
  AGENT_KEEP_ENGINES: 'true',
};

/** Clients, engines and services that fail in every known way, on real processes; what must hold is checked on both sides. */
export const run: Run = async ({ seed, args, say }) => {
  const root = repositoryRoot(import.meta.dirname);
  const engine = await ScriptedEngine.start();
  const installation = await Installation.start({ root, environment });
  let keep = true;
  try {
    const { key } = await createTenant(installation, 'Drill');
    await deployModels(installation, engine);
    const world: World = { installation, engine, client: new ChatClient(), key, random: randomFrom(seed), checks: [], say };
    const report = await scenarios(world, new Set(args));
    keep = !report.pass;
    return report;
  } finally {
    if (keep) say(`logs are kept in ${installation.folder}`);
    await installation.close(keep);
    await engine.close();
  }
};

async function deployModels(installation: Installation, engine: ScriptedEngine): Promise<void> {
  const attached = { artifact: `attach+${engine.url}`, framework: 'vllm' } as const;
  await deployModel(installation, { ...attached, name: MODEL, slots: 512 });
  await deployModel(installation, { ...attached, name: TWIN_MODEL, replicas: 2, slots: 64 });
  await deployModel(installation, { ...attached, name: NARROW_MODEL, slots: 2, queueMax: 4 });
  await deployModel(installation, { artifact: 'sim://', framework: 'engine-sim', name: SIM_MODEL, replicas: 2, slots: 64, engineOptions: { tokens_per_second: 100 } });
}

/** All scenarios, or those that the arguments name. */
async function scenarios(world: World, only: ReadonlySet<string>): ReturnType<Run> {
  const wanted = (name: string): boolean => only.size === 0 || only.has(name);
  const atStart = await holdings(world);
  const left = wanted('disconnects') ? await disconnects(world) : undefined;
  if (wanted('faults')) await engineFaults(world);
  const storm = wanted('storm') ? await retryStorm(world) : undefined;
  const loris = wanted('slow') ? startLoris(world) : undefined;
  const queue = wanted('queue') ? await queueFull(world) : undefined;
  const readers = wanted('slow') ? await slowReaders(world) : undefined;
  const cancels = wanted('cancels') ? await randomCancels(world) : undefined;
  await loris?.finish();
  const leaks = await leaked(world, atStart);
  const dark = wanted('blackout') ? await blackout(world) : undefined;
  const second = wanted('rolling') ? await world.installation.addGateway() : undefined;
  const rolling = second === undefined ? undefined : await rollingRestart(world, second);
  if (rolling !== undefined) check(world, 'the rolling restart had enough requests', rolling.requests >= ROLLING_REQUESTS, String(rolling.requests));
  const figures = {
    abort_share: left === undefined ? undefined : left.aborted / left.disconnects,
    abort_p99_ms: left?.atOnceP99Ms,
    foreign_bytes: cancels?.foreignBytes,
    leaked: leaks,
    retry_amplification: storm?.amplification,
    rolling_requests: rolling?.requests,
    rolling_failed: rolling?.failed,
  };
  return { figures, pass: world.checks.every((entry) => entry.ok), detail: { left, storm, queue, readers, cancels, dark, rolling, checks: world.checks } };
}

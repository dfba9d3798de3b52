import { createTenant, deployModel } from '../../platform/drill-world.js';
import { Installation } from '../../platform/installation.js';
import { ScriptedEngine } from '../../platform/scripted-engine.js';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { MODEL, Tally, type Attack } from './attack.js';
import { bodyAttacks } from './bodies.js';
import { requestForgery } from './forgery.js';
import { injection } from './injection.js';
import { natsRights } from './nats-rights.js';
import { pathAttacks } from './paths.js';
import { smuggling } from './smuggling.js';
import { tenants, traces } from './tenants.js';

/** Everything that a hostile client, a hostile model and a hostile service are known to try, on a whole installation; nothing may get through. */
export const run: Run = async ({ seed, args, say }) => {
  const engine = await ScriptedEngine.start();
  const installation = await Installation.start({ root: repositoryRoot(import.meta.dirname), environment: { LOG_LEVEL: 'info' } });
  let keep = true;
  try {
    await deployModel(installation, { name: MODEL, artifact: `attach+${engine.url}`, framework: 'vllm', slots: 64 });
    const tally = new Tally(say);
    const attack: Attack = { installation, engine, seed, say, attempt: tally.attempt, attacker: await createTenant(installation, 'Attacker'), victim: await createTenant(installation, 'Victim') };
    const wanted = (name: string): boolean => args.length === 0 || args.includes(name);
    if (wanted('tenants')) await tenants(attack);
    if (wanted('paths')) await pathAttacks(attack);
    if (wanted('smuggling')) await smuggling(attack);
    const bystander = wanted('bodies') ? await bodyAttacks(attack) : undefined;
    if (wanted('injection')) await injection(attack);
    if (wanted('forgery')) await requestForgery(attack);
    if (wanted('traces')) await traces(attack);
    if (wanted('nats')) await natsRights(attack);
    for (const [name, service] of installation.services) {
      const answer = await fetch(`${service.url}/livez`).catch(() => undefined);
      tally.attempt('survival', name, answer?.ok === true ? undefined : 'it does not answer any more');
    }
    const pass = tally.breaches.length === 0;
    keep = !pass;
    return { figures: { attempts: tally.total, breaches: tally.breaches.length }, pass, detail: { attempts: tally.attempts, breaches: tally.breaches, bystander } };
  } finally {
    if (keep) say(`logs are kept in ${installation.folder}`);
    await installation.close(keep);
    await engine.close();
  }
};

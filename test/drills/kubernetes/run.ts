import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot } from '../../contracts/files.js';
import type { Run } from '../../harness.js';
import { Installation } from '../../platform/installation.js';
import { Checks } from './checks.js';
import { Cluster, NAMESPACE, rbacFile } from './cluster.js';
import { buildControlPlane } from './control-plane/build-control-plane.js';
import { ControlPlane } from './control-plane/control-plane.js';
import { CuttableProxy } from './cuttable-proxy.js';
import { checkDisturbances } from './disturbance-checks.js';
import { FakeEngine } from './fake-engine.js';
import { FleetClient } from './fleet-client.js';
import { checkPlacements } from './placement-checks.js';

/** One kwok for each node, so that one node can be lost. */
const GROUPS = ['group-0', 'group-1', 'group-2'] as const;
const IMAGE = 'penstock.invalid/engine-sim:drill';

/**
 * The Kubernetes driver on a real control plane: etcd, API server, controller manager, scheduler; kwok plays the kubelets.
 * The driver runs as its own service account behind a connection that can be cut, beside a whole installation.
 */
export const run: Run = async ({ say }) => {
  const root = repositoryRoot(import.meta.dirname);
  const files = await buildControlPlane(say);
  const folder = await mkdtemp(join(tmpdir(), 'penstock-kubernetes-'));
  const checks = new Checks(say);
  const closers: (() => Promise<void>)[] = [];
  let isKept = true;
  try {
    const plane = await ControlPlane.start(folder, files, GROUPS);
    closers.push(() => plane.stop());
    const cluster = await Cluster.connect(plane.adminKubeconfig);
    closers.push(() => cluster.close());
    await cluster.createFrom(rbacFile(root));
    await cluster.createNodes(GROUPS);
    const proxy = await CuttableProxy.start(plane.apiPort);
    closers.push(() => proxy.close());
    const engine = await FakeEngine.start();
    closers.push(() => engine.close());
    const driverKubeconfig = join(folder, 'driver-kubeconfig');
    await writeFile(driverKubeconfig, plane.kubeconfig(`https://127.0.0.1:${proxy.port}`, await plane.ca(), await cluster.accountToken()), { mode: 0o600 });
    const installation = await Installation.start({ root, environment: { LOG_LEVEL: 'info' } });
    closers.push(() => installation.close(isKept));
    await actForCluster(installation, driverKubeconfig, engine.url);
    const world = { checks, cluster, fleet: new FleetClient(installation), penstock: commandLine(root, installation), plane, proxy, installation, driverKubeconfig };
    await checkPlacements(world);
    await checkDisturbances(world);
    isKept = checks.failed > 0;
    if (isKept) say(`logs are kept in ${folder} and ${installation.folder}`);
  } finally {
    for (const close of closers.reverse()) await close().catch((error: unknown) => say(`not closed: ${String(error)}`));
    if (!isKept) await rm(folder, { recursive: true, force: true });
  }
  return { figures: { checks: checks.results.length, failed: checks.failed }, pass: checks.failed === 0, detail: { results: checks.results } };
};

function commandLine(root: string, installation: Installation): (...words: readonly string[]) => Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], PENSTOCK_URL: installation.url, PENSTOCK_ADMIN_KEY: installation.settings.adminKey };
  return async (...words) => (await promisify(execFile)(process.execPath, [join(root, 'apps/cli/dist/main.js'), ...words], { env, cwd: installation.folder })).stdout;
}

/** The agent of this installation stands for the cluster instead of this machine. */
async function actForCluster(installation: Installation, kubeconfig: string, engineUrl: string): Promise<void> {
  const agent = installation.service('agent');
  await agent.stop();
  const settings = {
    // As `serviceEnvironments` has it: what stands for a cluster reads more than an agent.
    NATS_URL: installation.settings.natsServiceUrls?.['replica-driver'] ?? installation.settings.natsUrl,
    AGENT_DRIVER: 'kubernetes', KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: NAMESPACE, KUBERNETES_ENGINE_IMAGES: JSON.stringify({ 'engine-sim': IMAGE }), KUBERNETES_ENGINE_URL: engineUrl,
    NODE_GRACE_MS: '2000', VANISHED_GRACE_MS: '2000', BLOCKED_GRACE_MS: '20000',
  };
  for (const [name, value] of Object.entries(settings)) agent.withSetting(name, value);
  await agent.start();
}

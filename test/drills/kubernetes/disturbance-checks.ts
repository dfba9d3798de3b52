import { readFile } from 'node:fs/promises';
import { KubeClient, KubeError, loadClusterAccess } from '@penstock/infra-kubernetes';
import { until } from '../../platform/eventually.js';
import type { Installation } from '../../platform/installation.js';
import { must } from './checks.js';
import { NAMESPACE, type Cluster } from './cluster.js';
import type { ControlPlane } from './control-plane/control-plane.js';
import type { CuttableProxy } from './cuttable-proxy.js';
import { podsOf, type DrillWorld } from './placement-checks.js';

const WAIT_MS = 120_000;
/** Writes to other objects, so that the newest version that the driver knows falls behind what the server remembers. */
const VERSIONS_TO_PASS = 20;

export interface DisturbedWorld extends DrillWorld {
  readonly plane: ControlPlane;
  readonly proxy: CuttableProxy;
  readonly installation: Installation;
  readonly driverKubeconfig: string;
}

/** Drains, lost nodes, cut networks, crashes: what is wanted comes back, and nothing runs twice. */
export async function checkDisturbances(world: DisturbedWorld): Promise<void> {
  const { checks, fleet } = world;
  const endpoint = await fleet.deploy({ name: 'steady', gpuType: 'h100', replicas: 2 });
  await checks.check('a drain respects the disruption budget: the second eviction waits for a replacement', () => checkDrain(world, endpoint));
  await checks.check('the replicas of a lost node move, and its return brings nothing back twice', () => checkLostNode(world, endpoint));
  // Before the API server restarts: one that just started refuses everybody for a moment.
  await checks.check('the least rights suffice, and allow nothing else', () => checkRights(world));
  await checks.check('the driver survives 410 Expired after a cut network', () => checkExpired(world, endpoint));
  await checks.check('the driver survives a crash of the API server', () => checkApiServer(world));
  await checks.check('a killed driver goes on where it was, and nothing runs twice', () => checkKilledDriver(world));
}

async function checkDrain({ cluster, fleet }: DisturbedWorld, endpoint: string): Promise<void> {
  const before = await fleet.ready(endpoint, 2);
  const pods = podsOf(await cluster.pods(), endpoint);
  const [first, second] = pods;
  must(first !== undefined && second !== undefined && first.spec.nodeName !== second.spec.nodeName, 'two replicas on two nodes were expected');
  if (first === undefined || second === undefined) return;
  await until('a disruption budget that allows one eviction', WAIT_MS, () => allowed(cluster));
  await cluster.cordon(first.spec.nodeName, true);
  await until('a cordoned node that offers nothing', WAIT_MS, async () => ((await fleet.nodes()).find((node) => node.hostname === first.spec.nodeName)?.accelerators.length === 0 ? true : undefined));
  await cluster.evict(first.metadata.name);
  const refused = await cluster.evict(second.metadata.name).then(() => undefined, (error: unknown) => error);
  must(refused instanceof KubeError && refused.status === 429, `the second eviction was answered with ${String(refused)}`);
  const after = await until('a replacement', WAIT_MS, async () => {
    const replicas = await fleet.replicas(endpoint);
    const fresh = replicas.filter((replica) => replica.phase === 'ready' && !before.some((old) => old.replicaId === replica.replicaId));
    return fresh.length === 1 && replicas.filter((replica) => replica.phase === 'ready').length === 2 ? replicas : undefined;
  });
  const hosts = new Map((await fleet.nodes()).map((node) => [node.nodeId, node.hostname]));
  must(after.every((replica) => hosts.get(replica.nodeId) !== first.spec.nodeName), 'the replacement went to the cordoned node');
  const evicted = first.metadata.labels['penstock.dev/replica-id'] ?? '';
  const types = await fleet.typesOf('replica', evicted);
  must(types.at(-1) === 'replica.stopped.v1', `the evicted replica has ${types.join(', ')}`);
  await until('a second eviction', WAIT_MS, () => cluster.evict(second.metadata.name).then(() => true));
  await fleet.ready(endpoint, 2);
  await cluster.cordon(first.spec.nodeName, false);
}

async function allowed(cluster: Cluster): Promise<true | undefined> {
  const { items } = (await cluster.client.call('GET', `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`)) as { items: { status?: { disruptionsAllowed?: number } }[] };
  return items.some((item) => item.status?.disruptionsAllowed === 1) ? true : undefined;
}

async function checkLostNode({ cluster, fleet, plane }: DisturbedWorld, endpoint: string): Promise<void> {
  const before = await fleet.ready(endpoint, 2);
  const victim = before[0];
  must(victim !== undefined, 'a replica was expected');
  if (victim === undefined) return;
  const host = (await fleet.nodes()).find((node) => node.nodeId === victim.nodeId)?.hostname ?? '';
  const group = host.replace('gpu-', 'group-');
  plane.pauseKwok(group);
  try {
    await until('the loss of the node', WAIT_MS, async () => ((await fleet.nodes()).find((node) => node.nodeId === victim.nodeId)?.status === 'lost' ? true : undefined));
    await until('two ready replicas on other nodes', WAIT_MS, async () => {
      const replicas = await fleet.replicas(endpoint);
      return replicas.length === 2 && replicas.every((replica) => replica.phase === 'ready' && replica.nodeId !== victim.nodeId) ? true : undefined;
    });
    must((await fleet.typesOf('replica', victim.replicaId)).at(-1) === 'replica.failed.v1', 'the replica of the lost node did not fail');
  } finally {
    plane.resumeKwok(group);
  }
  await until('the return of the node', WAIT_MS, async () => ((await fleet.nodes()).find((node) => node.nodeId === victim.nodeId)?.status === 'up' ? true : undefined));
  await exactly(cluster, endpoint, 2);
}

async function checkExpired({ cluster, fleet, plane, proxy }: DisturbedWorld, endpoint: string): Promise<void> {
  const before = await fleet.ready(endpoint, 2);
  const expiredBefore = await fleet.driverCount('watch_expired');
  proxy.cut();
  try {
    await cluster.deletePod(before[0]?.replicaId.replaceAll('_', '-') ?? '');
    for (let index = 0; index < VERSIONS_TO_PASS; index += 1) await cluster.cordon('gpu-0', index % 2 === 0);
    // A server that starts anew remembers nothing from before its start.
    await plane.restartApiServer();
  } finally {
    proxy.mend();
  }
  await until('a relist after 410', WAIT_MS, async () => ((await fleet.driverCount('watch_expired')) > expiredBefore ? true : undefined));
  await until('a replacement of the deleted Pod', WAIT_MS, async () => {
    const replicas = await fleet.replicas(endpoint);
    return replicas.length === 2 && replicas.every((replica) => replica.phase === 'ready') && !replicas.some((replica) => replica.replicaId === before[0]?.replicaId) ? true : undefined;
  });
  await exactly(cluster, endpoint, 2);
}

async function checkApiServer({ cluster, fleet, plane }: DisturbedWorld): Promise<void> {
  await plane.restartApiServer();
  const endpoint = await fleet.deploy({ name: 'after-crash', gpuType: 'h100', replicas: 3 });
  await fleet.ready(endpoint, 3, WAIT_MS);
  await exactly(cluster, endpoint, 3);
  await fleet.retire(endpoint);
}

async function checkKilledDriver({ cluster, fleet, installation }: DisturbedWorld): Promise<void> {
  const agent = installation.service('agent');
  const endpoint = await fleet.deploy({ name: 'killed', gpuType: 'h100', replicas: 5 });
  await until('the first Pod', WAIT_MS, async () => (podsOf(await cluster.pods(), endpoint).length > 0 ? true : undefined));
  await agent.kill();
  await agent.start();
  const replicas = await fleet.ready(endpoint, 5, WAIT_MS);
  const pods = await exactly(cluster, endpoint, 5);
  const ids = new Set(replicas.map((replica) => replica.replicaId));
  must(pods.every((pod) => ids.has(pod.metadata.labels['penstock.dev/replica-id'] ?? '')), 'a Pod belongs to no replica');
  await fleet.retire(endpoint);
}

async function checkRights({ installation, driverKubeconfig }: DisturbedWorld): Promise<void> {
  const log = await readFile(installation.instance.path('logs', 'agent.log'), 'utf8');
  must(!/HTTP 40[13]/.test(log), `the driver was refused: ${/.*HTTP 40[13].*/.exec(log)?.[0].slice(0, 300)}`);
  const client = new KubeClient(await loadClusterAccess({ kubeconfig: driverKubeconfig, environment: {} }));
  try {
    const forbidden = [
      ['GET', `/api/v1/namespaces/${NAMESPACE}/secrets`], ['GET', '/api/v1/namespaces/kube-system/pods'], ['DELETE', '/api/v1/nodes/gpu-0'], ['GET', '/api/v1/namespaces'],
      ['DELETE', `/api/v1/namespaces/${NAMESPACE}`], ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
    ] as const;
    for (const [method, path] of forbidden) {
      const error = await client.call(method, path).then(() => undefined, (thrown: unknown) => thrown);
      must(error instanceof KubeError && error.status === 403, `${method} ${path} was not forbidden: ${String(error)}`);
    }
  } finally {
    await client.close();
  }
}

function exactly(cluster: Cluster, endpoint: string, count: number): ReturnType<Cluster['pods']> {
  return until(`exactly ${count} Pods of ${endpoint}`, WAIT_MS, async () => {
    const pods = podsOf(await cluster.pods(), endpoint);
    return pods.length === count && pods.every((pod) => pod.status.phase === 'Running' && pod.metadata.deletionTimestamp === undefined) ? pods : undefined;
  });
}

import { buildLeaderWorkerSet, KubeError } from '@penstock/infra-kubernetes';
import { until } from '../../platform/eventually.js';
import { must, type Checks } from './checks.js';
import { CLAIMABLE_PER_NODE, GPUS_PER_NODE, NAMESPACE, SLICE_RESOURCE, SLICES_PER_NODE, type Cluster, type PodBody } from './cluster.js';
import type { FleetClient } from './fleet-client.js';
import { leaderWorkerSetDefinition } from './leader-worker-set-definition.js';

const NODES = 3;
const WAIT_MS = 60_000;

export interface DrillWorld {
  readonly checks: Checks;
  readonly cluster: Cluster;
  readonly fleet: FleetClient;
  /** Runs the command line against the installation and returns what it prints. */
  readonly penstock: (...words: readonly string[]) => Promise<string>;
}

export function podsOf(pods: readonly PodBody[], endpointId: string): readonly PodBody[] {
  return pods.filter((pod) => pod.metadata.labels['penstock.dev/endpoint-id'] === endpointId);
}

/** GPUs, slices and claims: everything that fits runs where it was placed, and what does not fit is refused by us. */
export async function checkPlacements(world: DrillWorld): Promise<void> {
  const { checks, cluster, fleet } = world;
  await checks.check('three nodes join with their GPUs, slices and claimable devices', async () => {
    const offered = GPUS_PER_NODE + SLICES_PER_NODE + CLAIMABLE_PER_NODE;
    const nodes = await until('nodes of the cluster', WAIT_MS, async () => {
      const joined = await fleet.nodes();
      return joined.length === NODES && joined.every((node) => node.accelerators.length === offered) ? joined : undefined;
    });
    const types = new Set(nodes.flatMap((node) => node.accelerators.map((accelerator) => accelerator.type)));
    must(['h100', 'h100-mig-1g.10gb', 'a100'].every((type) => types.has(type)), `types are ${[...types].join(', ')}`);
  });

  await checks.check('replicas on one GPU and on four run on the planned nodes', async () => {
    const [one, four] = [await fleet.deploy({ name: 'one-gpu', gpuType: 'h100', replicas: 4 }), await fleet.deploy({ name: 'four-gpus', gpuType: 'h100', gpuCount: 4, replicas: 2 })];
    const replicas = [...(await fleet.ready(one, 4)), ...(await fleet.ready(four, 2))];
    const hostOf = new Map((await fleet.nodes()).map((node) => [node.nodeId, node.hostname]));
    const pods = await cluster.pods();
    for (const replica of replicas) {
      const pod = pods.find((candidate) => candidate.metadata.labels['penstock.dev/replica-id'] === replica.replicaId);
      must(pod?.status.phase === 'Running', `the Pod of ${replica.replicaId} is ${pod?.status.phase ?? 'missing'}`);
      must(pod?.spec.nodeName === hostOf.get(replica.nodeId), `the Pod of ${replica.replicaId} is on ${pod?.spec.nodeName}`);
      must(pod?.spec.containers[0]?.resources.limits['nvidia.com/gpu'] === String(replica.acceleratorIds.length), `the Pod of ${replica.replicaId} asks for the wrong number of GPUs`);
    }
    const [pod] = pods;
    must(pod?.metadata.labels['app.kubernetes.io/managed-by'] === 'penstock' && pod.spec.terminationGracePeriodSeconds > 0 && pod.spec.containers[0]?.readinessProbe !== undefined, 'a Pod lacks labels, grace or probes');
    must(pod?.spec.tolerations.some((toleration) => toleration.key === 'nvidia.com/gpu') === true, 'a Pod does not tolerate GPU nodes');
    await Promise.all([fleet.retire(one), fleet.retire(four)]);
  });

  await checks.check('all slices run, and one too many is refused with our reason and never Pending', async () => {
    const slices = NODES * SLICES_PER_NODE;
    const endpoint = await fleet.deploy({ name: 'slices', gpuType: 'h100-mig-1g.10gb', replicas: slices + 1 });
    await fleet.ready(endpoint, slices);
    const refusal = await fleet.refusal(endpoint);
    must(refusal.placedReplicas === slices && refusal.wantedReplicas === slices + 1 && refusal.reason.length > 0, `refused with ${JSON.stringify(refusal)}`);
    const pods = podsOf(await cluster.pods(), endpoint);
    must(pods.length === slices && pods.every((pod) => pod.status.phase === 'Running'), `${pods.length} Pods, phases ${[...new Set(pods.map((pod) => pod.status.phase))].join(', ')}`);
    must(pods.every((pod) => pod.spec.containers[0]?.resources.limits[SLICE_RESOURCE] === '1'), 'a Pod does not ask for one slice');
    await checks.check('the command line draws the fleet, and says why a replica is where it is and why one is missing', () => checkCommandLine(world, endpoint));
    await fleet.retire(endpoint);
  });

  await checks.check('replicas on DRA claims get the very devices that the plan chose', async () => {
    const endpoint = await fleet.deploy({ name: 'claims', gpuType: 'a100', replicas: NODES * CLAIMABLE_PER_NODE });
    const replicas = await fleet.ready(endpoint, NODES * CLAIMABLE_PER_NODE);
    const hostOf = new Map((await fleet.nodes()).map((node) => [node.nodeId, node.hostname]));
    const claims = new Map((await cluster.claims()).map((claim) => [claim.metadata.name, claim]));
    for (const { replicaId, nodeId, acceleratorIds } of replicas) {
      const claim = claims.get(replicaId.replaceAll('_', '-'));
      const result = claim?.status.allocation?.devices.results[0];
      must(result !== undefined && result.pool === hostOf.get(nodeId) && acceleratorIds[0]?.endsWith(`-dra-${result.device}`) === true, `${replicaId} was placed on ${acceleratorIds[0]} and got ${JSON.stringify(result)}`);
      must(claim?.metadata.ownerReferences[0]?.kind === 'Pod', `the claim of ${replicaId} is not owned by its Pod`);
    }
    await fleet.retire(endpoint);
  });

  await checks.check('retired endpoints leave no Pod, claim or budget behind', async () => {
    await until('an empty namespace', WAIT_MS, async () => {
      const [pods, claims, budgets] = [await cluster.pods(), await cluster.claims(), (await cluster.client.call('GET', `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`)) as { items: unknown[] }];
      return pods.length + claims.length + budgets.items.length === 0 ? true : undefined;
    });
  });

  await checks.check('a gang over two nodes is a LeaderWorkerSet that the API server accepts', () => checkGang(cluster));
}

async function checkCommandLine({ fleet, penstock }: DrillWorld, endpoint: string): Promise<void> {
  const drawn = await penstock('fleet');
  must(drawn.includes(`${SLICES_PER_NODE} x h100-mig-1g.10gb`) && drawn.includes('[A'), `the fleet is drawn as ${drawn.slice(0, 500)}`);
  // Endpoints that were retired a moment ago still give their devices back.
  await until('a fleet that holds the slices and nothing else', WAIT_MS, async () => {
    const described = JSON.parse(await penstock('fleet', '--json')) as { totals: { devicesHeld: number } };
    return described.totals.devicesHeld === NODES * SLICES_PER_NODE ? true : undefined;
  });
  const [replica] = await fleet.replicas(endpoint);
  const why = JSON.parse(await penstock('why', 'replica', replica?.replicaId ?? '', '--json')) as { placement: { reason: { candidates: unknown[] } }; decision: { rule: string } | null; correlated: unknown[] };
  must(why.placement.reason.candidates.length === NODES && why.decision?.rule === 'floor' && why.correlated.length > 0, `why replica says ${JSON.stringify(why).slice(0, 500)}`);
  const missing = await penstock('why', 'endpoint', 'slices');
  must(missing.includes(`and has ${NODES * SLICES_PER_NODE}: `), `why endpoint says ${missing.slice(0, 500)}`);
}

async function checkGang(cluster: Cluster): Promise<void> {
  await cluster.create(leaderWorkerSetDefinition);
  const device = (index: number) => ({ accelerator: { acceleratorId: `acc_${index}`, type: 'h100', memoryBytes: 1, device: 'k8s:nvidia.com/gpu', usableBytes: 1, computeMilli: 1_000, islandId: null, mig: null }, request: { kind: 'extended', resource: 'nvidia.com/gpu' } as const });
  const gang = buildLeaderWorkerSet(
    {
      assignment: {
        replicaId: 'rep_gang', endpointId: 'ep_gang', modelVersionId: 'mv_gang', nodeId: 'node_gang', acceleratorIds: [], members: [], mig: null, tolerations: [], reservedBytes: 1, engine: 'vllm', modelName: 'gang',
        source: { kind: 'hugging-face', repository: 'owner/model', revision: 'main', files: [] }, slots: 8, contextTokens: 4_096, engineOptions: {},
      },
      nodeNames: ['gpu-0', 'gpu-1'],
      devicesPerNode: Array.from({ length: GPUS_PER_NODE }, (_, index) => device(index)),
    },
    { cluster: 'main', images: { vllm: 'vllm/vllm-openai:drill' }, hubTokenSecret: undefined, modelCacheClaim: undefined, runtimeClass: undefined },
  ) as { spec: { leaderWorkerTemplate: { leaderTemplate: object; workerTemplate: object } } };
  const collection = `/apis/leaderworkerset.x-k8s.io/v1/namespaces/${NAMESPACE}/leaderworkersets?fieldValidation=Strict`;
  await until('the kind LeaderWorkerSet', WAIT_MS, async () => (await cluster.client.call('POST', collection, gang).then(() => true, (error: unknown) => (error instanceof KubeError && error.status === 404 ? undefined : Promise.reject(error as Error)))));
  // No controller makes the Pods here, so their templates are checked as Pods.
  for (const template of [gang.spec.leaderWorkerTemplate.leaderTemplate, gang.spec.leaderWorkerTemplate.workerTemplate] as { metadata: object }[]) {
    await cluster.client.call('POST', `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All&fieldValidation=Strict`, { apiVersion: 'v1', kind: 'Pod', ...template, metadata: { ...template.metadata, name: 'gang-member' } });
  }
}

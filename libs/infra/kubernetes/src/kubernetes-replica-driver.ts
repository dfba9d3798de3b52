import type { NodeJoinedV2 } from '@penstock/contract-events';
import { ReplicaAssignmentError, type DisruptionBudget, type DrivenNode, type ReplicaAssignment, type ReplicaDriver, type ReplicaObservation, type RetireOutcome } from '@penstock/domain-lifecycle';
import type { Logger } from '@penstock/kernel';
import { z } from 'zod';
import { loadClusterAccess } from './api/cluster-access.js';
import { KubeClient, KubeError } from './api/kube-client.js';
import { ResourceWatch, type WatchCounters } from './api/resource-watch.js';
import type { KubernetesSettings } from './kubernetes-settings.js';
import { budgetName, podDisruptionBudget } from './objects/disruption-budget.js';
import { objectName, ownLabels, REPLICA_LABEL, selectorOf, WORKER_INDEX_LABEL } from './objects/labels.js';
import { buildLeaderWorkerSet } from './objects/leader-worker-set.js';
import { replicaPod, type PodSettings } from './objects/replica-pod.js';
import { ownedByPod, resourceClaim } from './objects/resource-claim.js';
import { kubeNode, kubePod, kubeResourceSlice, type KubeNode, type KubePod, type KubeResourceSlice } from './observed/kube-objects.js';
import type { NodeDevice } from './observed/node-devices.js';
import { nodeIdPrefix, observeNode, type ObservedNode } from './observed/observe-node.js';
import { observeDeletedPod, observePods } from './observed/observe-pod.js';

export interface KubernetesDriverOptions {
  readonly client: KubeClient;
  readonly settings: KubernetesSettings;
  readonly version: string;
  readonly logger: Logger;
}

const FIELD_MANAGER = 'penstock';
/** Deleted Pods whose end the log does not know yet; one more and the oldest counts as merely missing. */
const DELETED_KEPT_MAX = 10_000;
const nameList = z.looseObject({ items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })) });
const created = z.looseObject({ metadata: z.looseObject({ uid: z.string() }) });

/** A Kubernetes cluster as a driver: nodes with GPUs become nodes of the fleet, placed replicas become Pods on them. */
export class KubernetesReplicaDriver implements ReplicaDriver {
  readonly kind = 'kubernetes';
  private readonly watchCounts: WatchCounters = { lists: 0, expired: 0, reconnects: 0 };
  private readonly refusals = { budget: 0 };
  private readonly listeners = new Set<() => void>();
  private readonly nodesWatch: ResourceWatch<KubeNode>;
  private readonly slicesWatch: ResourceWatch<KubeResourceSlice>;
  private readonly podsWatch: ResourceWatch<KubePod>;
  private readonly deleted = new Map<string, ReplicaObservation>();
  private observed: readonly ObservedNode[] | undefined;
  private readonly namespaced: string;
  private readonly podSettings: PodSettings;
  private readonly engines: NodeJoinedV2['engines'];

  constructor(private readonly options: KubernetesDriverOptions) {
    const { client, settings, logger } = options;
    this.namespaced = `namespaces/${settings.KUBERNETES_NAMESPACE}`;
    this.engines = Object.entries(settings.KUBERNETES_ENGINE_IMAGES).map(([kind, image]) => ({ kind: kind as NodeJoinedV2['engines'][number]['kind'], version: image.slice(-100) }));
    this.podSettings = {
      cluster: settings.KUBERNETES_CLUSTER, images: settings.KUBERNETES_ENGINE_IMAGES, hubTokenSecret: settings.KUBERNETES_HUB_TOKEN_SECRET,
      modelCacheClaim: settings.KUBERNETES_MODEL_CACHE_CLAIM, runtimeClass: settings.KUBERNETES_RUNTIME_CLASS,
    };
    const common = { client, logger, counters: this.watchCounts, onChange: () => this.changed() };
    this.nodesWatch = new ResourceWatch({ ...common, path: '/api/v1/nodes', schema: kubeNode });
    this.slicesWatch = new ResourceWatch({ ...common, path: '/apis/resource.k8s.io/v1/resourceslices', schema: kubeResourceSlice, isOptional: true });
    this.podsWatch = new ResourceWatch({ ...common, path: `/api/v1/${this.namespaced}/pods`, labelSelector: selectorOf(ownLabels(settings.KUBERNETES_CLUSTER)), schema: kubePod, onDeleted: (pod) => this.keepDeleted(pod) });
  }

  owns(nodeId: string): boolean {
    return nodeId.startsWith(nodeIdPrefix(this.options.settings.KUBERNETES_CLUSTER));
  }

  isSynced(): boolean {
    return this.nodesWatch.isSynced && this.slicesWatch.isSynced && this.podsWatch.isSynced;
  }

  nodes(): readonly DrivenNode[] {
    return this.observedNodes().map((node) => node.driven);
  }

  replicas(): readonly ReplicaObservation[] {
    const present = observePods(this.podsWatch.all(), this.options.settings.KUBERNETES_ENGINE_URL);
    const ids = new Set(present.map((observation) => observation.replicaId));
    return [...present, ...[...this.deleted.values()].filter((observation) => !ids.has(observation.replicaId))];
  }

  async start(assignment: ReplicaAssignment): Promise<void> {
    const { client } = this.options;
    if (assignment.members.length > 1) return this.startGang(assignment);
    const node = this.nodeOf(assignment.nodeId);
    const devices = assignment.acceleratorIds.map((acceleratorId) => deviceOf(node, acceleratorId));
    const pod = replicaPod(assignment, node.name, devices, this.podSettings);
    const claim = resourceClaim(assignment, devices, this.podSettings.cluster);
    if (claim !== undefined) await this.createOnce(`/apis/resource.k8s.io/v1/${this.namespaced}/resourceclaims`, claim);
    const name = objectName(assignment.replicaId);
    const answer = (await this.createOnce(`/api/v1/${this.namespaced}/pods`, pod)) ?? (await client.call('GET', `/api/v1/${this.namespaced}/pods/${name}`));
    this.podsWatch.accept(answer);
    if (claim !== undefined) await client.call('PATCH', `/apis/resource.k8s.io/v1/${this.namespaced}/resourceclaims/${name}`, ownedByPod(name, created.parse(answer).metadata.uid), 'merge');
  }

  async retire(replicaId: string): Promise<RetireOutcome> {
    const gang = this.gangLeader(replicaId);
    const name = gang ?? objectName(replicaId);
    // A member that is evicted is made anew by the gang's controller: the budget is only asked, and the gang deleted.
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...(gang === undefined ? {} : { deleteOptions: { dryRun: ['All'] } }) };
    try {
      await this.options.client.call('POST', `/api/v1/${this.namespaced}/pods/${name}/eviction`, eviction);
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return 'ending';
      if (!(error instanceof KubeError && error.status === 429)) throw error;
      this.refusals.budget += 1;
      return 'held';
    }
    if (gang !== undefined) await this.deleteOnce(`${this.gangs}/${objectName(replicaId)}`);
    return 'ending';
  }

  async remove(replicaId: string): Promise<void> {
    if (this.gangLeader(replicaId) !== undefined) return this.deleteOnce(`${this.gangs}/${objectName(replicaId)}`);
    if (this.deleted.delete(replicaId)) return;
    await this.deleteOnce(`/api/v1/${this.namespaced}/pods/${objectName(replicaId)}`);
  }

  async protect(budgets: readonly DisruptionBudget[]): Promise<void> {
    const { client } = this.options;
    const { cluster } = this.podSettings;
    const base = `/apis/policy/v1/${this.namespaced}/poddisruptionbudgets`;
    const wanted = new Set(budgets.map((budget) => budgetName(budget.endpointId)));
    for (const budget of budgets) await client.call('PATCH', `${base}/${budgetName(budget.endpointId)}?fieldManager=${FIELD_MANAGER}&force=true`, podDisruptionBudget(budget, cluster), 'apply');
    const { items } = nameList.parse(await client.call('GET', `${base}?labelSelector=${encodeURIComponent(selectorOf(ownLabels(cluster)))}`));
    for (const { metadata } of items) if (!wanted.has(metadata.name)) await this.deleteOnce(`${base}/${metadata.name}`);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  counters(): Readonly<Record<string, number>> {
    return { watch_lists: this.watchCounts.lists, watch_expired: this.watchCounts.expired, watch_reconnects: this.watchCounts.reconnects, budget_refusals: this.refusals.budget };
  }

  async close(): Promise<void> {
    await Promise.all([this.nodesWatch.close(), this.slicesWatch.close(), this.podsWatch.close()]);
    await this.options.client.close();
  }

  /** A gang is one object whose controller makes the Pods: they start and end together. */
  private async startGang(assignment: ReplicaAssignment): Promise<void> {
    const nodes = assignment.members.map((member) => ({ member, node: this.nodeOf(member.nodeId) }));
    const devices = nodes.map(({ member, node }) => member.acceleratorIds.map((acceleratorId) => deviceOf(node, acceleratorId)));
    const gang = buildLeaderWorkerSet({ assignment, nodeNames: nodes.map(({ node }) => node.name), devicesPerNode: devices[0] ?? [] }, this.podSettings);
    await this.createOnce(this.gangs, gang).catch((error: unknown) => {
      if (error instanceof KubeError && error.status === 404) throw new ReplicaAssignmentError('engine_missing', 'This cluster has no LeaderWorkerSets: install them (https://lws.sigs.k8s.io), or let a replica fit on one node.');
      throw error;
    });
  }

  private get gangs(): string {
    return `/apis/leaderworkerset.x-k8s.io/v1/${this.namespaced}/leaderworkersets`;
  }

  /** The name of the leading Pod of a gang; undefined for a replica that is one Pod. */
  private gangLeader(replicaId: string): string | undefined {
    const members = this.podsWatch.all().filter(({ metadata }) => metadata.labels[REPLICA_LABEL] === replicaId && metadata.labels[WORKER_INDEX_LABEL] !== undefined);
    return members.find(({ metadata }) => metadata.labels[WORKER_INDEX_LABEL] === '0')?.metadata.name ?? members[0]?.metadata.name;
  }

  private nodeOf(nodeId: string): ObservedNode {
    const node = this.observedNodes().find((candidate) => candidate.driven.report.nodeId === nodeId);
    if (node === undefined) throw new ReplicaAssignmentError('node_lost', 'Its node is not in the cluster any more.');
    return node;
  }

  private keepDeleted(pod: KubePod): void {
    const observation = observeDeletedPod(pod);
    if (observation === undefined) return;
    this.deleted.set(observation.replicaId, observation);
    const [oldest] = this.deleted.keys();
    if (this.deleted.size > DELETED_KEPT_MAX && oldest !== undefined) this.deleted.delete(oldest);
  }

  private observedNodes(): readonly ObservedNode[] {
    const { settings, version } = this.options;
    const reading = { cluster: settings.KUBERNETES_CLUSTER, draDriver: settings.KUBERNETES_DRA_DRIVER, engines: this.engines, driverVersion: version };
    this.observed ??= this.nodesWatch.all().flatMap((node) => observeNode(node, this.slicesWatch.all(), reading) ?? []);
    return this.observed;
  }

  private changed(): void {
    this.observed = undefined;
    for (const listener of this.listeners) listener();
  }

  /** Undefined when it exists already, from an earlier try. */
  private async createOnce(path: string, object: object): Promise<unknown> {
    return this.options.client.call('POST', path, object).catch((error: unknown) => {
      if (error instanceof KubeError && error.status === 409) return undefined;
      // Admission refused the object as it is: the same object is refused again.
      if (error instanceof KubeError && (error.status === 400 || error.status === 422)) throw new ReplicaAssignmentError('engine_missing', error.message.slice(0, 1_000));
      throw error;
    });
  }

  private async deleteOnce(path: string): Promise<void> {
    await this.options.client.call('DELETE', path).catch((error: unknown) => {
      if (!(error instanceof KubeError && error.status === 404)) throw error;
    });
  }
}

function deviceOf(node: ObservedNode, acceleratorId: string): NodeDevice {
  const device = node.devices.get(acceleratorId);
  if (device === undefined) throw new ReplicaAssignmentError('node_lost', `Its accelerator ${acceleratorId} is not on the node any more.`);
  return device;
}

/** Connects to the cluster that the settings name and begins to watch it. */
export async function connectKubernetes(settings: KubernetesSettings, environment: Readonly<Record<string, string | undefined>>, parts: Pick<KubernetesDriverOptions, 'version' | 'logger'>): Promise<KubernetesReplicaDriver> {
  const access = await loadClusterAccess({ kubeconfig: settings.KUBECONFIG, environment });
  return new KubernetesReplicaDriver({ ...parts, client: new KubeClient(access), settings });
}

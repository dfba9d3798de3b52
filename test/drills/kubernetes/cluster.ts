import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KubeClient, loadClusterAccess } from '@penstock/infra-kubernetes';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { KWOK_LABEL } from './control-plane/control-plane.js';

export const NAMESPACE = 'penstock';
export const ACCOUNT = 'penstock-driver';
export const GPUS_PER_NODE = 8;
export const SLICES_PER_NODE = 7;
export const CLAIMABLE_PER_NODE = 2;
export const SLICE_RESOURCE = 'nvidia.com/mig-1g.10gb';
const TOKEN_SECONDS = 3_600;

/** Where objects of each kind are made. */
const COLLECTIONS: Readonly<Record<string, (namespace: string) => string>> = {
  Namespace: () => '/api/v1/namespaces',
  Node: () => '/api/v1/nodes',
  ServiceAccount: (namespace) => `/api/v1/namespaces/${namespace}/serviceaccounts`,
  ClusterRole: () => '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: () => '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: (namespace) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`,
  RoleBinding: (namespace) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
  DeviceClass: () => '/apis/resource.k8s.io/v1/deviceclasses',
  ResourceSlice: () => '/apis/resource.k8s.io/v1/resourceslices',
  CustomResourceDefinition: () => '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
};

const manifest = z.looseObject({ kind: z.string(), metadata: z.looseObject({ name: z.string(), namespace: z.string().default('') }) });

export const podBody = z.looseObject({
  metadata: z.looseObject({ name: z.string(), uid: z.string(), labels: z.record(z.string(), z.string()), deletionTimestamp: z.string().optional() }),
  spec: z.looseObject({
    nodeName: z.string().default(''),
    terminationGracePeriodSeconds: z.int(),
    tolerations: z.array(z.looseObject({ key: z.string().optional() })),
    resourceClaims: z.array(z.looseObject({ resourceClaimName: z.string() })).default([]),
    containers: z.array(z.looseObject({ resources: z.looseObject({ limits: z.record(z.string(), z.string()).default({}) }), readinessProbe: z.unknown(), startupProbe: z.unknown() })),
  }),
  status: z.looseObject({ phase: z.string() }),
});
export type PodBody = z.output<typeof podBody>;
const podList = z.looseObject({ items: z.array(podBody) });

export const claimBody = z.looseObject({
  metadata: z.looseObject({ name: z.string(), ownerReferences: z.array(z.looseObject({ kind: z.string() })).default([]) }),
  status: z.looseObject({ allocation: z.looseObject({ devices: z.looseObject({ results: z.array(z.looseObject({ device: z.string(), pool: z.string() })) }) }).optional() }).prefault({}),
});
const claimList = z.looseObject({ items: z.array(claimBody) });

/** What the drill itself does to the cluster, as its administrator. */
export class Cluster {
  private constructor(readonly client: KubeClient) {}

  static async connect(kubeconfig: string): Promise<Cluster> {
    return new Cluster(new KubeClient(await loadClusterAccess({ kubeconfig, environment: {} })));
  }

  async create(object: unknown): Promise<void> {
    const { kind, metadata } = manifest.parse(object);
    const collection = COLLECTIONS[kind];
    if (collection === undefined) throw new Error(`the drill does not know where a ${kind} belongs`);
    await this.client.call('POST', `${collection(metadata.namespace)}?fieldValidation=Strict`, object);
  }

  /** Applies a manifest file as an operator does. */
  async createFrom(path: string): Promise<void> {
    for (const document of parseAllDocuments(await readFile(path, 'utf8'))) await this.create(document.toJS());
  }

  /** Three GPU nodes whose kubelet is played by kwok: whole GPUs, MIG slices of others, and devices that only DRA hands out. */
  async createNodes(groups: readonly string[]): Promise<void> {
    for (const [name, driver] of [['gpu.nvidia.com', 'gpu.nvidia.com'], ['mig.nvidia.com', 'gpu.nvidia.com']] as const) {
      await this.create({ apiVersion: 'resource.k8s.io/v1', kind: 'DeviceClass', metadata: { name }, spec: { selectors: [{ cel: { expression: `device.driver == "${driver}"` } }] } });
    }
    for (const [index, group] of groups.entries()) {
      await this.create(gpuNode(`gpu-${index}`, group));
      await this.create(deviceSlice(`gpu-${index}`));
    }
  }

  pods(): Promise<readonly PodBody[]> {
    return this.client.call('GET', `/api/v1/namespaces/${NAMESPACE}/pods`).then((body) => podList.parse(body).items);
  }

  claims(): Promise<readonly z.output<typeof claimBody>[]> {
    return this.client.call('GET', `/apis/resource.k8s.io/v1/namespaces/${NAMESPACE}/resourceclaims`).then((body) => claimList.parse(body).items);
  }

  async evict(podName: string): Promise<void> {
    await this.client.call('POST', `/api/v1/namespaces/${NAMESPACE}/pods/${podName}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: podName } });
  }

  async cordon(nodeName: string, unschedulable: boolean): Promise<void> {
    await this.client.call('PATCH', `/api/v1/nodes/${nodeName}`, { spec: { unschedulable } }, 'merge');
  }

  async deletePod(podName: string): Promise<void> {
    await this.client.call('DELETE', `/api/v1/namespaces/${NAMESPACE}/pods/${podName}`);
  }

  /** A token of the driver's service account, as Kubernetes mounts it into a Pod. */
  async accountToken(): Promise<string> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: TOKEN_SECONDS } };
    const answer = await this.client.call('POST', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${ACCOUNT}/token`, body);
    return z.looseObject({ status: z.looseObject({ token: z.string() }) }).parse(answer).status.token;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

/** `dist` holds no manifests of other folders, so this one is found from the root. */
export function rbacFile(root: string): string {
  return join(root, 'deploy/kubernetes/driver-rbac.yaml');
}

function gpuNode(name: string, group: string): object {
  const resources = { cpu: '96', memory: '1024Gi', pods: '110', 'nvidia.com/gpu': String(GPUS_PER_NODE), [SLICE_RESOURCE]: String(SLICES_PER_NODE) };
  return {
    apiVersion: 'v1', kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: {
        [KWOK_LABEL]: group, 'kubernetes.io/hostname': name, 'nvidia.com/gpu.product': 'NVIDIA-H100-80GB-HBM3', 'nvidia.com/gpu.memory': '81559', 'nvidia.com/mig.strategy': 'mixed',
        [`${SLICE_RESOURCE}.memory`]: '9856',
      },
    },
    status: { capacity: resources, allocatable: resources },
  };
}

function deviceSlice(nodeName: string): object {
  return {
    apiVersion: 'resource.k8s.io/v1', kind: 'ResourceSlice', metadata: { name: `${nodeName}-gpus` },
    spec: {
      driver: 'gpu.nvidia.com', nodeName, pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
      devices: Array.from({ length: CLAIMABLE_PER_NODE }, (_, index) => ({
        name: `gpu-${index}`,
        attributes: { uuid: { string: `GPU-${nodeName}-${index}` }, type: { string: 'gpu' }, productName: { string: 'NVIDIA A100-SXM4-80GB' } },
        capacity: { memory: { value: '80Gi' } },
      })),
    },
  };
}

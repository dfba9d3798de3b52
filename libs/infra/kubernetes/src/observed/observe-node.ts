import type { NodeJoinedV2 } from '@penstock/contract-events';
import type { DrivenNode } from '@penstock/domain-lifecycle';
import { parseQuantity, type KubeNode, type KubeResourceSlice } from './kube-objects.js';
import { ACCELERATORS_MAX, claimDevices, extendedDevices, type NodeDevice } from './node-devices.js';

export interface ObservedNode {
  readonly name: string;
  readonly driven: DrivenNode;
  /** Every device by its accelerator id, also while the node is cordoned. */
  readonly devices: ReadonlyMap<string, NodeDevice>;
}

/** What fails together with a node, the most specific first. */
const FAILURE_DOMAIN_LABELS = ['penstock.dev/failure-domain', 'topology.kubernetes.io/rack'] as const;

/** How providers mark nodes that may be taken back; values in lower case. */
const SPOT_LABELS = [['karpenter.sh/capacity-type', 'spot'], ['eks.amazonaws.com/capacityType', 'spot'], ['cloud.google.com/gke-spot', 'true'], ['kubernetes.azure.com/scalesetpriority', 'spot']] as const;

/** Every Pod of ours tolerates GPUs; what the node controller sets says only that the node is not ready or cordoned, which is known otherwise. */
const IGNORED_TAINTS = ['nvidia.com/gpu', 'node.kubernetes.io/'] as const;
const TAINTS_MAX = 50;

export interface NodeReading {
  readonly cluster: string;
  readonly draDriver: string;
  readonly engines: NodeJoinedV2['engines'];
  readonly driverVersion: string;
}

/** The id of a node inside an installation. A machine that is made anew under the same name is another node. */
export function nodeIdOf(cluster: string, uid: string): string {
  return `${nodeIdPrefix(cluster)}${uid.replaceAll('-', '')}`;
}

export function nodeIdPrefix(cluster: string): string {
  return `node_k8s_${cluster}_`;
}

/** What a node offers to the fleet; undefined for one without accelerators, which is none of ours. */
export function observeNode(node: KubeNode, slices: readonly KubeResourceSlice[], reading: NodeReading): ObservedNode | undefined {
  const nodeId = nodeIdOf(reading.cluster, node.metadata.uid);
  const devices = [...extendedDevices(node, nodeId), ...claimDevices(slices, node.metadata.name, nodeId, reading.draDriver)].slice(0, ACCELERATORS_MAX);
  if (devices.length === 0) return undefined;
  const ready = node.status.conditions.find((condition) => condition.type === 'Ready');
  const isReady = ready?.status === 'True' && node.metadata.deletionTimestamp === undefined;
  return {
    name: node.metadata.name,
    devices: new Map(devices.map((device) => [device.accelerator.acceleratorId, device])),
    driven: {
      isReady,
      reason: isReady ? null : `Kubernetes says that it is not ready: ${ready?.reason || 'no reason'}${ready?.message ? ` (${ready.message.slice(0, 200)})` : ''}`,
      report: {
        nodeId,
        hostname: node.metadata.name,
        // A cordoned node offers nothing to new replicas; those that run there go on.
        accelerators: node.spec.unschedulable ? [] : devices.map((device) => device.accelerator),
        cpuCores: Math.max(1, Math.floor(parseQuantity(node.status.allocatable['cpu']) ?? 1)),
        memoryBytes: Math.floor(parseQuantity(node.status.allocatable['memory']) ?? 0),
        engines: reading.engines,
        agentVersion: reading.driverVersion,
        failureDomain: FAILURE_DOMAIN_LABELS.map((label) => node.metadata.labels[label]).find((value) => value !== undefined && value !== '') ?? nodeId,
        taints: node.spec.taints.filter(({ effect, key }) => effect !== 'PreferNoSchedule' && !IGNORED_TAINTS.some((ignored) => key.startsWith(ignored))).map(({ key, value, effect }) => `${key}=${value}:${effect}`.slice(0, 200)).slice(0, TAINTS_MAX),
        market: SPOT_LABELS.some(([label, spot]) => node.metadata.labels[label]?.toLowerCase() === spot) ? 'spot' : 'on_demand',
        price: null,
      },
    },
  };
}

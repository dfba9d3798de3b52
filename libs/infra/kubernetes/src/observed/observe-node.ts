import type { NodeJoinedV1 } from '@penstock/contract-events';
import type { DrivenNode } from '@penstock/domain-lifecycle';
import { parseQuantity, type KubeNode, type KubeResourceSlice } from './kube-objects.js';
import { ACCELERATORS_MAX, claimDevices, extendedDevices, type NodeDevice } from './node-devices.js';

export interface ObservedNode {
  readonly name: string;
  readonly driven: DrivenNode;
  /** Every device by its accelerator id, also while the node is cordoned. */
  readonly devices: ReadonlyMap<string, NodeDevice>;
}

export interface NodeReading {
  readonly cluster: string;
  readonly draDriver: string;
  readonly engines: NodeJoinedV1['engines'];
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
      },
    },
  };
}

import type { ReplicaAssignment } from '@penstock/domain-lifecycle';
import type { NodeDevice } from '../observed/node-devices.js';
import { objectName, replicaLabels } from './labels.js';

/** The DRA claim of a replica: one request for each device, each naming the very device that the plan chose. Undefined when none is claimed. */
export function resourceClaim(assignment: ReplicaAssignment, devices: readonly NodeDevice[], cluster: string): object | undefined {
  const requests = devices.flatMap(({ request }) => (request.kind === 'claim' ? [request] : []));
  if (requests.length === 0) return undefined;
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: objectName(assignment.replicaId), labels: replicaLabels(assignment, cluster) },
    spec: {
      devices: {
        requests: requests.map(({ deviceClass, expression }, index) => ({
          name: `device-${index}`,
          exactly: { deviceClassName: deviceClass, allocationMode: 'ExactCount', count: 1, selectors: [{ cel: { expression } }] },
        })),
      },
    },
  };
}

/** Lets Kubernetes delete the claim once its Pod is gone. */
export function ownedByPod(podName: string, podUid: string): object {
  return { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: podName, uid: podUid }] } };
}

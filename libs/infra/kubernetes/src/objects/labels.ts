import type { ReplicaAssignment } from '@penstock/domain-lifecycle';

/** The port on which every engine container listens. */
export const ENGINE_PORT = 8_000;

export const REPLICA_LABEL = 'penstock.dev/replica-id';
/** Set by the LeaderWorkerSet controller; 0 is the leader. */
export const WORKER_INDEX_LABEL = 'leaderworkerset.sigs.k8s.io/worker-index';
export const ENDPOINT_LABEL = 'penstock.dev/endpoint-id';
export const CLUSTER_LABEL = 'penstock.dev/cluster';
const NODE_ANNOTATION = 'penstock.dev/node-id';

/** Marks every object of one driver; it only ever looks at these. */
export function ownLabels(cluster: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/managed-by': 'penstock', [CLUSTER_LABEL]: cluster };
}

export function selectorOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`).join(',');
}

export function replicaLabels(assignment: Pick<ReplicaAssignment, 'replicaId' | 'endpointId' | 'engine'>, cluster: string): Readonly<Record<string, string>> {
  return {
    ...ownLabels(cluster),
    'app.kubernetes.io/name': assignment.engine,
    'app.kubernetes.io/instance': assignment.replicaId,
    'app.kubernetes.io/component': 'engine',
    'app.kubernetes.io/part-of': 'penstock',
    [REPLICA_LABEL]: assignment.replicaId,
    [ENDPOINT_LABEL]: assignment.endpointId,
  };
}

export function replicaAnnotations(assignment: Pick<ReplicaAssignment, 'nodeId'>): Readonly<Record<string, string>> {
  return { [NODE_ANNOTATION]: assignment.nodeId };
}

/** Ids hold an underscore after their prefix, which object names may not. */
export function objectName(id: string): string {
  return id.toLowerCase().replaceAll('_', '-');
}

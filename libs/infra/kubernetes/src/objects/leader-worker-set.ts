import { ReplicaAssignmentError, type ReplicaAssignment } from '@penstock/domain-lifecycle';
import type { NodeDevice } from '../observed/node-devices.js';
import { engineArguments } from './engine-arguments.js';
import { objectName, replicaAnnotations, replicaLabels } from './labels.js';
import { onNodes, podSpec, type PodSettings } from './replica-pod.js';

/** One replica over several nodes, with the same devices on each. */
export interface GangAssignment {
  readonly assignment: ReplicaAssignment;
  /** Kubernetes' names of the nodes; the first Pod leads, wherever it lands among them. */
  readonly nodeNames: readonly string[];
  /** Devices of one member. */
  readonly devicesPerNode: readonly NodeDevice[];
}

/** Set by the LeaderWorkerSet controller in every member. */
const LEADER_ADDRESS = '$(LWS_LEADER_ADDRESS)';
const WORKER_INDEX = '$(LWS_WORKER_INDEX)';

/**
 * A gang as a LeaderWorkerSet: its members start, fail and restart together. Tensors are split inside a node, layers over
 * nodes, since only the devices of one node share a fast link. Throws {@link ReplicaAssignmentError}.
 */
export function buildLeaderWorkerSet({ assignment, nodeNames, devicesPerNode }: GangAssignment, settings: PodSettings): object {
  if (assignment.engine !== 'vllm') throw new ReplicaAssignmentError('engine_missing', `Only vLLM spans several nodes; ${assignment.engine} has to fit on one.`);
  if (nodeNames.length < 2 || devicesPerNode.length === 0) throw new ReplicaAssignmentError('engine_missing', 'A gang needs at least two nodes with a device on each.');
  if (devicesPerNode.some((device) => device.request.kind === 'claim')) throw new ReplicaAssignmentError('engine_missing', 'A gang takes whole nodes by extended resources; claims name devices of a single node.');
  const single = engineArguments({ ...assignment, acceleratorIds: devicesPerNode.map((device) => device.accelerator.acceleratorId) });
  const gangArgs = ['--pipeline-parallel-size', String(nodeNames.length), '--nnodes', String(nodeNames.length), '--node-rank', WORKER_INDEX, '--master-addr', LEADER_ADDRESS];
  const labels = replicaLabels(assignment, settings.cluster);
  const template = (extra: readonly string[]): object => ({
    metadata: { labels, annotations: replicaAnnotations(assignment) },
    spec: { ...podSpec(assignment, devicesPerNode, settings, { ...single, args: [...single.args, ...gangArgs, ...extra] }), affinity: onNodes(nodeNames) },
  });
  return {
    apiVersion: 'leaderworkerset.x-k8s.io/v1',
    kind: 'LeaderWorkerSet',
    metadata: { name: objectName(assignment.replicaId), labels, annotations: replicaAnnotations(assignment) },
    spec: {
      replicas: 1,
      leaderWorkerTemplate: {
        size: nodeNames.length,
        restartPolicy: 'RecreateGroupOnPodRestart',
        leaderTemplate: template([]),
        workerTemplate: withoutProbes(template(['--headless'])),
      },
    },
  };
}

/** Only the leader answers HTTP. */
function withoutProbes(template: object): object {
  return JSON.parse(JSON.stringify(template, (key, value: unknown) => (key === 'startupProbe' || key === 'readinessProbe' ? undefined : value))) as object;
}

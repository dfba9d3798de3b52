import type { ReplicaObservation } from '@penstock/domain-lifecycle';
import { ENGINE_PORT, REPLICA_LABEL, WORKER_INDEX_LABEL } from '../objects/labels.js';
import type { KubePod } from './kube-objects.js';

/** Reasons of a waiting container that do not go away by waiting a little. */
const PULL_TROUBLE = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'RegistryUnavailable']);
const START_TROUBLE = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError', 'CrashLoopBackOff']);
const REASON_LENGTH_MAX = 1_000;

/** What a Pod says about its replica; undefined for a Pod that carries no replica. `engineUrl` replaces the Pod's own address. */
export function observePod(pod: KubePod, engineUrl: string | undefined): ReplicaObservation | undefined {
  const replicaId = pod.metadata.labels[REPLICA_LABEL];
  if (replicaId === undefined) return undefined;
  const { status, metadata } = pod;
  const host = status.podIP?.includes(':') === true ? `[${status.podIP}]` : status.podIP;
  const url = engineUrl ?? (host === undefined ? null : `http://${host}:${ENGINE_PORT}`);
  const base = { replicaId, url, blocked: null, end: null };
  if (status.phase === 'Failed' || status.phase === 'Succeeded') return { ...base, phase: 'ended', end: { wasAsked: metadata.deletionTimestamp !== undefined, reason: endReason(pod) } };
  if (metadata.deletionTimestamp !== undefined) return { ...base, phase: 'ending' };
  if (status.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True')) return { ...base, phase: 'serving' };
  const isScheduled = pod.spec.nodeName !== '';
  const isRunning = status.containerStatuses.some((container) => container.state.running !== undefined);
  return { ...base, phase: isRunning ? 'loading' : isScheduled ? 'pulling' : 'waiting', blocked: trouble(pod) };
}

/** What is left of a Pod that Kubernetes deleted: somebody asked for it, and eviction says so in a condition. */
export function observeDeletedPod(pod: KubePod): ReplicaObservation | undefined {
  const replicaId = pod.metadata.labels[REPLICA_LABEL];
  if (replicaId === undefined) return undefined;
  const target = pod.status.conditions.find((condition) => condition.type === 'DisruptionTarget' && condition.status === 'True');
  const reason = target === undefined ? 'its Pod was deleted' : `its Pod was evicted (${target.reason}): ${target.message}`;
  return { replicaId, phase: 'ended', url: null, blocked: null, end: { wasAsked: true, reason: cut(reason) } };
}

/**
 * One observation for each replica: the Pods of a gang are one, which runs as long as all of them do, and serves when its leader
 * does.
 */
export function observePods(pods: readonly KubePod[], engineUrl: string | undefined): readonly ReplicaObservation[] {
  const byReplica = Map.groupBy(pods, (pod) => pod.metadata.labels[REPLICA_LABEL] ?? '');
  return [...byReplica.values()].flatMap((members) => {
    const leader = members.find((pod) => (pod.metadata.labels[WORKER_INDEX_LABEL] ?? '0') === '0') ?? members[0];
    const seen = members.flatMap((pod) => observePod(pod, engineUrl) ?? []);
    const leading = leader === undefined ? undefined : observePod(leader, engineUrl);
    if (leading === undefined) return [];
    const first = (matches: (one: ReplicaObservation) => boolean): ReplicaObservation | undefined => seen.find(matches);
    const over = first(({ phase }) => phase === 'ended') ?? first(({ phase }) => phase === 'ending');
    const blocked = leading.blocked ?? first((one) => one.blocked !== null)?.blocked ?? null;
    return [over === undefined ? { ...leading, blocked } : { ...over, url: leading.url }];
  });
}

function trouble(pod: KubePod): ReplicaObservation['blocked'] {
  const refused = pod.status.conditions.find((condition) => condition.type === 'PodScheduled' && condition.status === 'False');
  if (refused !== undefined) return { code: 'start_timeout', reason: cut(`Kubernetes cannot schedule its Pod (${refused.reason}): ${refused.message}`) };
  for (const { state } of pod.status.containerStatuses) {
    const { reason, message } = state.waiting ?? { reason: '', message: '' };
    if (PULL_TROUBLE.has(reason)) return { code: 'pull_failed', reason: cut(`The image of its Pod cannot be pulled (${reason}): ${message}`) };
    if (START_TROUBLE.has(reason)) return { code: 'engine_exited', reason: cut(`The container of its Pod does not start (${reason}): ${message}`) };
  }
  return null;
}

function endReason(pod: KubePod): string {
  const { status } = pod;
  const ended = status.containerStatuses.map((container) => container.state.terminated).find((state) => state !== undefined);
  if (ended !== undefined) return cut(`The engine ended with exit code ${ended.exitCode}${ended.reason === '' ? '' : ` (${ended.reason})`}${ended.message === '' ? '' : `: ${ended.message}`}`);
  return cut(`Its Pod ended: ${status.reason || status.phase}${status.message === '' ? '' : `: ${status.message}`}`);
}

function cut(text: string): string {
  return text.slice(0, REASON_LENGTH_MAX);
}

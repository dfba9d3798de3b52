import { ReplicaAssignmentError, type ReplicaAssignment } from '@penstock/domain-lifecycle';
import type { DeviceRequest, NodeDevice } from '../observed/node-devices.js';
import { engineArguments, type EngineCommand } from './engine-arguments.js';
import { ENGINE_PORT, objectName, replicaAnnotations, replicaLabels } from './labels.js';

/** What Pods of one driver have in common. */
export interface PodSettings {
  readonly cluster: string;
  readonly images: Readonly<Partial<Record<ReplicaAssignment['engine'], string>>>;
  readonly hubTokenSecret: string | undefined;
  readonly modelCacheClaim: string | undefined;
  readonly runtimeClass: string | undefined;
}

/** An engine gets this long to finish what runs and to free its devices. */
export const TERMINATION_GRACE_SECONDS = 60;
/** Weights may take long to arrive: half an hour until the first healthy answer. */
const STARTUP_PROBE = { periodSeconds: 5, failureThreshold: 360 } as const;
const CACHE_FOLDER = '/cache';
const CLAIM_REFERENCE = 'devices';

/** The Pod of a replica: pinned to its node, so that Kubernetes counts devices and starts containers, and decides nothing else. */
export function replicaPod(assignment: ReplicaAssignment, nodeName: string, devices: readonly NodeDevice[], settings: PodSettings): object {
  const name = objectName(assignment.replicaId);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: replicaLabels(assignment, settings.cluster), annotations: replicaAnnotations(assignment) },
    spec: { ...podSpec(assignment, devices, settings, engineArguments(assignment)), affinity: onNodes([nodeName]), restartPolicy: 'Never' },
  };
}

/** The part of a Pod that replicas on one node and members of a gang share. */
export function podSpec(assignment: ReplicaAssignment, devices: readonly NodeDevice[], settings: PodSettings, command: EngineCommand): object {
  const image = settings.images[assignment.engine];
  if (image === undefined) throw new ReplicaAssignmentError('engine_missing', `There is no image for ${assignment.engine}: add it to KUBERNETES_ENGINE_IMAGES.`);
  const claims = devices.some((device) => device.request.kind === 'claim');
  const health = { httpGet: { path: '/health', port: ENGINE_PORT }, timeoutSeconds: 5 };
  return {
    terminationGracePeriodSeconds: TERMINATION_GRACE_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }, ...assignment.tolerations.flatMap(toleration)],
    ...(settings.runtimeClass === undefined ? {} : { runtimeClassName: settings.runtimeClass }),
    ...(claims ? { resourceClaims: [{ name: CLAIM_REFERENCE, resourceClaimName: objectName(assignment.replicaId) }] } : {}),
    containers: [{
      name: 'engine',
      image,
      ...(command.command === undefined ? {} : { command: command.command }),
      args: command.args,
      env: environment(settings),
      ports: [{ name: 'http', containerPort: ENGINE_PORT }],
      resources: { ...extendedResources(devices.map((device) => device.request)), ...(claims ? { claims: [{ name: CLAIM_REFERENCE }] } : {}) },
      startupProbe: { ...health, ...STARTUP_PROBE },
      readinessProbe: { ...health, periodSeconds: 5, failureThreshold: 3 },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      volumeMounts: [{ name: 'cache', mountPath: CACHE_FOLDER }, { name: 'shm', mountPath: '/dev/shm' }],
    }],
    volumes: [
      { name: 'cache', ...(settings.modelCacheClaim === undefined ? { emptyDir: {} } : { persistentVolumeClaim: { claimName: settings.modelCacheClaim } }) },
      // Engines on several devices exchange tensors through shared memory.
      { name: 'shm', emptyDir: { medium: 'Memory' } },
    ],
  };
}

/** A taint as nodes report it, `key=value:Effect`; what is not of this form is no taint of Kubernetes. */
function toleration(taint: string): readonly object[] {
  const found = /^([^=]+)=([^:]*):(NoSchedule|NoExecute)$/.exec(taint);
  return found === null ? [] : [{ key: found[1], operator: 'Equal', value: found[2], effect: found[3] }];
}

/** Matching by name and not by a label: labels may be changed, names not. */
export function onNodes(nodeNames: readonly string[]): object {
  const terms = nodeNames.map((name) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }));
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } };
}

function extendedResources(requests: readonly DeviceRequest[]): { readonly limits?: Readonly<Record<string, string>> } {
  const counts = new Map<string, number>();
  for (const request of requests) if (request.kind === 'extended') counts.set(request.resource, (counts.get(request.resource) ?? 0) + 1);
  return counts.size === 0 ? {} : { limits: Object.fromEntries([...counts].map(([resource, count]) => [resource, String(count)])) };
}

function environment({ hubTokenSecret }: PodSettings): readonly object[] {
  const token = hubTokenSecret === undefined ? [] : [{ name: 'HF_TOKEN', valueFrom: { secretKeyRef: { name: hubTokenSecret, key: 'token' } } }];
  return [{ name: 'HF_HOME', value: `${CACHE_FOLDER}/hub` }, { name: 'LLAMA_CACHE', value: `${CACHE_FOLDER}/llama.cpp` }, ...token];
}

import { connectNats, NatsEventLog } from '@penstock/infra-nats';
import type { UsageRecord } from '@penstock/contract-events';
import { usageRecordsOf } from '@penstock/domain-usage';
import { until } from './eventually.js';
import type { Installation } from './installation.js';

const READY_WAIT_MS = 60_000;
const SETTLE_WAIT_MS = 30_000;

export interface Deployment {
  readonly name: string;
  readonly artifact: string;
  readonly framework: 'vllm' | 'engine-sim';
  readonly replicas?: number | undefined;
  readonly slots?: number | undefined;
  readonly queueMax?: number | undefined;
  readonly queueWaitMs?: number | undefined;
  readonly engineOptions?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/** Deploys one model and waits until all its replicas are ready. Returns the id of its endpoint. */
export async function deployModel(installation: Installation, deployment: Deployment): Promise<string> {
  const replicas = deployment.replicas ?? 1;
  const { endpoint_id: endpointId } = (await installation.admin('POST', '/v1/models/deploy', {
    model_name: deployment.name,
    model_artifact: deployment.artifact,
    framework: deployment.framework,
    hardware: { min_replicas: replicas, max_replicas: replicas },
    serving: { slots_per_replica: deployment.slots ?? 256, context_tokens: 8_192, queue_max: deployment.queueMax ?? 1_000, queue_wait_ms_max: deployment.queueWaitMs ?? 30_000 },
    engine_options: deployment.engineOptions ?? {},
  })) as { endpoint_id: string };
  await until(`${replicas} ready replicas of ${deployment.name}`, READY_WAIT_MS, async () => ((await readyReplicas(installation, endpointId)).length === replicas ? true : undefined));
  return endpointId;
}

export async function readyReplicas(installation: Installation, endpointId: string): Promise<readonly string[]> {
  const fleet = (await installation.admin('GET', '/admin/v1/fleet')) as { replicas: { phase: string; endpointId: string; replicaId: string }[] };
  return fleet.replicas.filter((replica) => replica.phase === 'ready' && replica.endpointId === endpointId).map((replica) => replica.replicaId);
}

export interface Tenant {
  readonly organisationId: string;
  readonly projectId: string;
  readonly key: string;
  readonly keyId: string;
  readonly adminKey: string;
}

/** An organisation with a project, an inference key and an admin key of its own. */
export async function createTenant(installation: Installation, name: string): Promise<Tenant> {
  const { id: organisationId } = (await installation.admin('POST', '/admin/v1/organisations', { name })) as { id: string };
  const { id: projectId } = (await installation.admin('POST', '/admin/v1/projects', { organisation_id: organisationId, name: 'drill' })) as { id: string };
  const { key, id: keyId } = (await installation.admin('POST', '/admin/v1/keys', { name: 'drill', project_id: projectId })) as { key: string; id: string };
  const { key: adminKey } = (await installation.admin('POST', '/admin/v1/keys', { name: 'drill admin', project_id: projectId, kind: 'admin' })) as { key: string };
  return { organisationId, projectId, key, keyId, adminKey };
}

/** Every usage event of the log once those of `requestIds` are among them, or what is there after a while. */
export async function usageOf(installation: Installation, requestIds: readonly string[]): Promise<ReadonlyMap<string, UsageRecord>> {
  const link = await connectNats({ url: installation.settings.natsUrl, name: 'drill' });
  try {
    const log = new NatsEventLog(link, { consumerName: 'drill' });
    const readAll = async (): Promise<Map<string, UsageRecord>> => {
      const events = new Map<string, UsageRecord>();
      for await (const batch of log.read('EV_USAGE')) for (const record of batch.flatMap(usageRecordsOf)) events.set(record.requestId, record);
      return events;
    };
    return await until('usage of every request', SETTLE_WAIT_MS, async () => {
      const events = await readAll();
      return requestIds.every((id) => events.has(id)) ? events : undefined;
    }).catch(readAll);
  } finally {
    await link.close();
  }
}

/** The sum of one metric of a service over all its labels. */
export async function metricOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

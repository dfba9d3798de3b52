import type { Standalone } from '@penstock/infra-composition';
import { until } from '../platform/eventually.js';

const READY_WAIT_MS = 120_000;

/** Deploys a model through the public API and waits until a replica of it is ready. */
export async function deployModel({ url, adminKey }: Standalone, body: Readonly<Record<string, unknown>>): Promise<void> {
  const headers = { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' };
  const deployed = await fetch(`${url}/v1/models/deploy`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!deployed.ok) throw new Error(`deploying ${String(body['model_name'])}: HTTP ${deployed.status}: ${await deployed.text()}`);
  const { endpoint_id: endpointId } = (await deployed.json()) as { endpoint_id: string };
  await until(`${String(body['model_name'])} is ready`, READY_WAIT_MS, async () => {
    const fleet = (await (await fetch(`${url}/admin/v1/fleet`, { headers })).json()) as { replicas: { endpointId: string; phase: string }[] };
    return fleet.replicas.some((replica) => replica.endpointId === endpointId && replica.phase === 'ready') ? true : undefined;
  });
}

/** An inference key of the operator's organisation. */
export async function createKey({ url, adminKey }: Standalone): Promise<string> {
  const response = await fetch(`${url}/admin/v1/keys`, { method: 'POST', headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'conformance' }) });
  return ((await response.json()) as { key: string }).key;
}

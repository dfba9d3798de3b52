import { accessProjection, authorise } from '@penstock/domain-access';
import { catalogProjection, findEndpointByName } from '@penstock/domain-catalog';
import { apiKeyCreatedV2, endpointDeployedV1, type CatalogueEvent } from '@penstock/contract-events';
import type { AggregateRef, RecordedEvent } from '@penstock/kernel';

const KEYS = 1_000_000;
const ENDPOINTS = 10_000;
const LOOK_UPS = 200_000;
const TENANTS = 1_000;

/** What a gateway's view of a million keys and ten thousand endpoints takes, and what finding one of them costs. */
export async function measureKeys(): Promise<{ readonly keys: number; readonly endpoints: number; readonly bytes_per_key: number; readonly bytes_per_endpoint: number; readonly key_look_up_us: number; readonly endpoint_look_up_us: number }> {
  let sequence = 0;
  const recorded = (ref: AggregateRef, event: CatalogueEvent): RecordedEvent => ({ ...event, id: '', source: '', time: '2026-01-01T00:00:00.000Z', ref, stream: 'EV_ACCESS', sequence: (sequence += 1), correlationId: '', causationId: '' });
  const hmacOf = (index: number): string => index.toString(16).padStart(64, '0');
  const before = await heapBytes();
  let access = accessProjection.initialState();
  for (let index = 0; index < KEYS; index += 1) {
    const keyId = `key_${index.toString(16).padStart(32, '0')}`;
    const tenant = index % TENANTS;
    access = accessProjection.apply(access, recorded({ context: 'access', aggregate: 'api-key', id: keyId }, { type: 'api-key.created.v2', data: { ...apiKeyCreatedV2.example, serviceAccountId: null, keyId, hmac: hmacOf(index), organisationId: `org_${tenant}`, projectId: `proj_${tenant}`, name: `key ${index}`, lastFour: index.toString(36).slice(-4).padStart(4, '0') } }));
  }
  const withKeys = await heapBytes();
  let catalog = catalogProjection.initialState();
  for (let index = 0; index < ENDPOINTS; index += 1) {
    const endpointId = `ep_${index}`;
    catalog = catalogProjection.apply(catalog, recorded({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.deployed.v1', data: { ...endpointDeployedV1.example, endpointId, name: `model-${index}` } }));
  }
  const withEndpoints = await heapBytes();
  const keyMs = timed(() => {
    for (let count = 0; count < LOOK_UPS; count += 1) if (authorise(access, hmacOf((count * 7_919) % KEYS), 0).kind !== 'authorised') throw new Error('a key was not found');
  });
  const endpointMs = timed(() => {
    for (let count = 0; count < LOOK_UPS; count += 1) if (findEndpointByName(catalog, `model-${(count * 7_919) % ENDPOINTS}`, 'org_1') === undefined) throw new Error('an endpoint was not found');
  });
  return {
    keys: access.keys.size, endpoints: catalog.endpoints.size,
    bytes_per_key: Math.round((withKeys - before) / KEYS), bytes_per_endpoint: Math.round((withEndpoints - withKeys) / ENDPOINTS),
    key_look_up_us: Math.round((keyMs / LOOK_UPS) * 1e5) / 100, endpoint_look_up_us: Math.round((endpointMs / LOOK_UPS) * 1e5) / 100,
  };
}

function timed(work: () => void): number {
  const startMs = performance.now();
  work();
  return performance.now() - startMs;
}

/** After everything that can be collected was. */
async function heapBytes(): Promise<number> {
  const { setFlagsFromString } = await import('node:v8');
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

import type { EventReader, StoryEvent } from './event-reader.js';
import type { Histories } from './story.js';

/** Replicas of one endpoint whose whole history is read; older ones are left to `events show`. */
export const REPLICAS_READ_MAX = 50;

/** Everything the log has about an endpoint and some of its replicas. */
export async function collectHistories(reader: EventReader, endpointId: string, replicaIds: readonly string[]): Promise<Histories> {
  const [endpoint, scaling, refusals, reservations, replicas, circuits] = await Promise.all([
    reader.historyOf('registry', 'endpoint', endpointId),
    reader.historyOf('scaling', 'endpoint-scale', endpointId),
    reader.historyOf('fleet', 'endpoint-placement', endpointId),
    reader.reservationsOf(endpointId),
    Promise.all(replicaIds.map((replicaId) => reader.historyOf('fleet', 'replica', replicaId))),
    Promise.all(replicaIds.map((replicaId) => reader.historyOf('routing', 'replica-circuit', replicaId))),
  ]);
  return { endpoint, scaling, refusals, reservations, replicas: replicas.flat(), circuits: circuits.flat(), modelVersion: await modelVersionOf(reader, endpoint) };
}

async function modelVersionOf(reader: EventReader, endpoint: readonly StoryEvent[]): Promise<readonly StoryEvent[]> {
  const deployed = endpoint.findLast((event) => event.type === 'endpoint.deployed.v1');
  return deployed?.type === 'endpoint.deployed.v1' ? reader.historyOf('registry', 'model-version', deployed.data.modelVersionId) : [];
}

import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import type { EndpointFleet, ServingReplica, StartTrouble } from '@penstock/domain-routing';

/** What the fleet's state says about each of some endpoints, in one pass over the replicas. The map holds the size of a replica's KV cache in tokens; null where it is not known. */
export function endpointFleets(fleet: FleetState, kvTokensByEndpoint: ReadonlyMap<string, number | null>): Map<string, EndpointFleet> {
  const replicas = new Map<string, ReplicaState[]>();
  for (const endpointId of kvTokensByEndpoint.keys()) replicas.set(endpointId, []);
  for (const replica of fleet.replicas.values()) replicas.get(replica.endpointId)?.push(replica);
  const fleets = new Map<string, EndpointFleet>();
  for (const [endpointId, own] of replicas) fleets.set(endpointId, endpointFleet(fleet, endpointId, own, kvTokensByEndpoint.get(endpointId) ?? null));
  return fleets;
}

function endpointFleet(fleet: FleetState, endpointId: string, replicas: readonly ReplicaState[], kvTokens: number | null): EndpointFleet {
  return { ready: servingIn(replicas, 'ready', kvTokens), draining: servingIn(replicas, 'draining', kvTokens), trouble: startTrouble(fleet, endpointId, replicas) };
}

function servingIn(replicas: readonly ReplicaState[], phase: ReplicaState['phase'], kvTokens: number | null): readonly ServingReplica[] {
  const serving: ServingReplica[] = [];
  const inPhase = replicas.filter((replica) => replica.phase === phase);
  // Only where replicas differ: the largest takes what no other does, and the engine judges.
  const contextMax = Math.max(...inPhase.map((replica) => replica.contextTokens ?? 0));
  for (const { replicaId, modelVersionId, url, engine, servedModel, slots, contextTokens } of inPhase) {
    if (url === null || engine === null || servedModel === null || slots === null) continue;
    serving.push({ replicaId, modelVersionId, url, engine, servedModel, slots, kvTokens, contextTokens: contextTokens !== null && contextTokens < contextMax ? contextTokens : null });
  }
  return serving;
}

function startTrouble(fleet: FleetState, endpointId: string, replicas: readonly ReplicaState[]): StartTrouble {
  let isStarting = false;
  let failedStarts = 0;
  let failedStartsInARow = 0;
  let lastFailure: string | null = null;
  // Oldest placement first.
  for (const replica of replicas) {
    if (replica.phase === 'placed' || replica.phase === 'pulling' || replica.phase === 'loading' || replica.phase === 'warming') isStarting = true;
    if (replica.readyAtMs !== null) failedStartsInARow = 0;
    if (replica.phase !== 'failed' || replica.readyAtMs !== null) continue;
    failedStarts += 1;
    failedStartsInARow += 1;
    lastFailure = replica.reason;
  }
  for (const pending of fleet.ledger.pending.values()) if (pending.endpointId === endpointId) isStarting = true;
  return { isStarting, placementRefusal: fleet.refusals.get(endpointId)?.reason ?? null, failedStarts, failedStartsInARow, lastFailure };
}

import { endpointDeployedV1, modelVersionRegisteredV1, placementRefusedV2, replicaPlacedV2, reservationMadeV1, wantedReplicasChangedV1, type CatalogueEvent } from '@penstock/contract-events';
import { describe, expect, test } from '@jest/globals';
import { toStoryEvent, type StoryEvent } from './event-reader.js';
import { printEndpoint, printReplica } from './print-story.js';
import { tellEndpoint, tellReplica, type Histories } from './story.js';

function event(second: number, { type, data }: CatalogueEvent, causedBy = 'cmd_0', correlation = 'cor_1'): StoryEvent {
  return toStoryEvent({ id: `evt_${second}`, type, data, time: `2026-11-29T12:00:0${second}.000Z`, source: 'penstock/test', subject: 's', stream: 'EV', sequence: second, correlation_id: correlation, causation_id: causedBy, traceparent: null });
}

const placed = replicaPlacedV2.schema.parse(replicaPlacedV2.example);
const histories: Histories = {
  endpoint: [event(1, { type: 'endpoint.deployed.v1', data: endpointDeployedV1.schema.parse(endpointDeployedV1.example) }, 'cmd_0', 'cor_0')],
  modelVersion: [event(2, { type: 'model-version.registered.v1', data: modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example) }, 'cmd_0', 'cor_0')],
  scaling: [event(3, { type: 'wanted-replicas.changed.v1', data: wantedReplicasChangedV1.schema.parse(wantedReplicasChangedV1.example) })],
  refusals: [event(5, { type: 'placement.refused.v2', data: placementRefusedV2.schema.parse(placementRefusedV2.example) })],
  replicas: [event(4, { type: 'replica.placed.v2', data: { ...placed, reason: { plan: null, summary: 'best fit of 2 nodes', candidates: [{ nodeId: 'node_01', score: 0.98, excluded: null }, { nodeId: 'node_02', score: null, excluded: 'no h100' }] } } }, 'evt_3'), event(6, { type: 'replica.advanced.v1', data: { replicaId: 'rep_01', phase: 'loading' } })],
  circuits: [],
  reservations: [event(8, { type: 'reservation.made.v1', data: reservationMadeV1.schema.parse(reservationMadeV1.example) }, 'cmd_9', 'cor_9')],
};

describe('why', () => {
  test('a replica: the decision that wanted it, its candidates with scores and exclusions, and what is correlated', () => {
    const story = tellReplica('rep_01', histories);
    expect(story?.decision).toMatchObject({ rule: 'wake', signals: { waiting: 1 }, eventId: 'evt_3' });
    expect(story?.correlated.map((entry) => entry.type)).toEqual(['wanted-replicas.changed.v1', 'placement.refused.v2']);
    const text = printReplica(story!, (nodeId) => `host of ${nodeId}`).join('\n');
    for (const words of ['because best fit of 2 nodes', 'host of node_01', '0.98', 'no h100', 'chosen', 'by the rule wake', '98.0 MB of weights']) expect(text).toContain(words);
  });

  test('an endpoint: decisions with their signals, placements, and the refusal while it is the newest word', () => {
    const story = tellEndpoint('ep_01', histories);
    expect(story?.refusal).toMatchObject({ code: 'no_memory' });
    expect(printEndpoint(story!, (nodeId) => nodeId).join('\n')).toContain('waiting 1');
    expect(printEndpoint(story!, (nodeId) => nodeId).join('\n')).toContain('reserved with priority 500: 2 replicas carry 20 requests/s');
    const later = { ...histories, replicas: [...histories.replicas, event(7, { type: 'replica.placed.v2', data: { ...placed, replicaId: 'rep_02' } })] };
    expect(tellEndpoint('ep_01', later)?.refusal).toBeNull();
  });

  test('what the log does not know has no story', () => {
    const empty: Histories = { endpoint: [], modelVersion: [], scaling: [], refusals: [], replicas: [], circuits: [], reservations: [] };
    expect([tellReplica('rep_9', empty), tellEndpoint('ep_9', empty)]).toEqual([undefined, undefined]);
  });
});

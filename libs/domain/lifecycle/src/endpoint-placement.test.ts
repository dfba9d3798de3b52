import { placementRefusedV2 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { describe, test } from '@jest/globals';
import { endpointPlacementDecider, type EndpointPlacementEvent } from './endpoint-placement.js';

const refusal = placementRefusedV2.schema.parse(placementRefusedV2.example);
const told: EndpointPlacementEvent = { type: 'placement.refused.v2', data: refusal };

describe('a refused placement', () => {
  test('is told once', () => {
    given(endpointPlacementDecider).when({ kind: 'refuse', refusal, repeat: false }).then(told);
    given(endpointPlacementDecider, told).when({ kind: 'refuse', refusal, repeat: false }).then();
  });

  test('is told again with another reason, or after a placement in between', () => {
    const other = { ...refusal, code: 'no_engine', reason: 'no node has the engine' } as const;
    given(endpointPlacementDecider, told).when({ kind: 'refuse', refusal: other, repeat: false }).then({ type: 'placement.refused.v2', data: other });
    given(endpointPlacementDecider, told).when({ kind: 'refuse', refusal, repeat: true }).then(told);
  });
});

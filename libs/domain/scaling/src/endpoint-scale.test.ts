import { wantedReplicasChangedV1 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { describe, test } from '@jest/globals';
import { endpointScaleDecider, type EndpointScaleEvent } from './endpoint-scale.js';

const change = wantedReplicasChangedV1.schema.parse({ ...wantedReplicasChangedV1.example, from: 0, to: 2 });
const changed: EndpointScaleEvent = { type: 'wanted-replicas.changed.v1', data: change };

describe('the wanted replicas of an endpoint', () => {
  test('change from what they are', () => {
    given(endpointScaleDecider).when({ kind: 'change', ...change }).then(changed);
    given(endpointScaleDecider, changed).when({ kind: 'change', ...change, from: 2, to: 3 }).then({ type: 'wanted-replicas.changed.v1', data: { ...change, from: 2, to: 3 } });
  });

  test('stay when the decision was made on an older number, or says the same', () => {
    given(endpointScaleDecider, changed).when({ kind: 'change', ...change }).then();
    given(endpointScaleDecider, changed).when({ kind: 'change', ...change, from: 2, to: 2 }).then();
  });
});

import { describe, expect, test } from '@jest/globals';
import { endpointDeployedV1, type EndpointDeployedV1 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { endpointDecider, type EndpointEvent } from './endpoint.js';

const data = endpointDeployedV1.example as EndpointDeployedV1;
const deployed: EndpointEvent = { type: 'endpoint.deployed.v1', data };
const retired: EndpointEvent = { type: 'endpoint.retired.v1', data: { endpointId: 'ep_01', reason: 'gone' } };

describe('endpointDecider', () => {
  test('deploys once; the same again is a no-op, whatever the order of keys', () => {
    given(endpointDecider).when({ kind: 'deploy', data }).then(deployed);
    const reordered = Object.fromEntries(Object.entries(data).reverse()) as EndpointDeployedV1;
    given(endpointDecider, deployed).when({ kind: 'deploy', data: reordered }).then();
  });

  test('another setting is refused and named', () => {
    const changed = { ...data, scaling: { ...data.scaling, maxReplicas: 9 } };
    expect(given(endpointDecider, deployed).when({ kind: 'deploy', data: changed }).thenRefused('already_exists').param).toBe('scaling.maxReplicas');
    const idle = { ...data, scaling: { ...data.scaling, scaleToZeroAfterIdleSeconds: 60 } };
    expect(given(endpointDecider, deployed).when({ kind: 'deploy', data: idle }).thenRefused('already_exists').param).toBe('scaling.scaleToZeroAfterIdleSeconds');
    const options = { ...data, engineOptions: { threads: 2 } };
    expect(given(endpointDecider, deployed).when({ kind: 'deploy', data: options }).thenRefused('already_exists').param).toBe('engineOptions.threads');
  });

  test('retires once, and never comes back', () => {
    given(endpointDecider, deployed).when({ kind: 'retire', reason: 'gone' }).then(retired);
    given(endpointDecider, deployed, retired).when({ kind: 'retire', reason: 'gone' }).then();
    given(endpointDecider).when({ kind: 'retire', reason: 'gone' }).thenRefused('endpoint_not_found');
    given(endpointDecider, deployed, retired).when({ kind: 'deploy', data }).thenRefused('conflict');
  });
});

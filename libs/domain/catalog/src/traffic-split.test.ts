import { describe, expect, test } from '@jest/globals';
import { endpointDeployedV1, trafficSplitSetV1, type EndpointDeployedV1, type TrafficSplitSetV1 } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import { given } from '@penstock/testing-kit';
import fc from 'fast-check';
import { catalogProjection } from './catalog-projection.js';
import { endpointsVisibleTo, findEndpointByName, type CatalogState } from './catalog-state.js';
import { checkTrafficSplit, type TrafficSplitRequest } from './check-traffic-split.js';
import { chooseEndpoint } from './choose-endpoint.js';
import { trafficSplitRef } from './refs.js';
import { trafficSplitDecider } from './traffic-split.js';

const example = trafficSplitSetV1.example as TrafficSplitSetV1;
const deployed = endpointDeployedV1.example as EndpointDeployedV1;
const deploy = (endpointId: string, name: string, organisationId: string | null = null, change: Partial<EndpointDeployedV1> = {}) => ({ type: 'endpoint.deployed.v1', data: { ...deployed, endpointId, name, organisationId, ...change } });
const split = (change: Partial<TrafficSplitSetV1> = {}) => ({ type: 'traffic-split.set.v1', data: { ...example, targets: [{ endpointId: 'ep_1', weight: 95 }, { endpointId: 'ep_2', weight: 5 }], ...change } });
const retire = (endpointId: string) => ({ type: 'endpoint.retired.v1', data: { endpointId, reason: 'test' } });

function project(...events: readonly { readonly type: string; readonly data: unknown }[]): CatalogState {
  const recorded = events.map((event, index): RecordedEvent => ({
    ...event, id: `e.${index}`, source: 'test', time: new Date(1_000 * (index + 1)).toISOString(), ref: trafficSplitRef('any'), stream: 'EV_REGISTRY', sequence: index + 1, correlationId: 'c', causationId: 'c',
  }));
  const state = recorded.reduce((folded, event) => catalogProjection.apply(folded, event), catalogProjection.initialState());
  return catalogProjection.restore(JSON.parse(JSON.stringify(catalogProjection.snapshot(state))));
}

const two = [deploy('ep_1', 'assistant-v1'), deploy('ep_2', 'assistant-v2')];
const chosen = (state: CatalogState, user: string, name = 'assistant', organisationId: string | null = 'org_1') => chooseEndpoint(state, name, { organisationId, requestId: 'req_1', user });

describe('a name that several endpoints share', () => {
  test('the answer is called as the caller called the model, and says which endpoint it is', () => {
    const state = project(...two, split());
    expect(chosen(state, 'anna')).toMatchObject({ name: 'assistant', endpointId: expect.stringMatching(/^ep_[12]$/) });
    expect(chosen(state, 'anna', 'assistant-v2')).toMatchObject({ name: 'assistant-v2', endpointId: 'ep_2' });
    expect(chosen(state, 'anna', 'nobody')).toBeUndefined();
    expect(findEndpointByName(state, 'assistant', 'org_1')).toMatchObject({ name: 'assistant', endpointId: 'ep_1' });
    expect(endpointsVisibleTo(state, 'org_1').map(({ name }) => name)).toEqual(['assistant', 'assistant-v1', 'assistant-v2']);
  });

  test('property: weights hold within 1 % over users, and a user stays', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 2, maxLength: 5 }).filter((weights) => weights.some((weight) => weight > 0)), fc.nat(1_000), (weights, salt) => {
      const targets = weights.map((weight, index) => ({ endpointId: `ep_${index}`, weight }));
      const state = project(...weights.map((_, index) => deploy(`ep_${index}`, `model-${index}`)), split({ targets }));
      const counts = new Map<string, number>();
      const users = 40_000;
      for (let user = 0; user < users; user += 1) {
        const endpointId = chosen(state, `${salt}-${user}`)?.endpointId ?? '';
        counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1);
        if (user % 1_000 === 0) expect(chosen(state, `${salt}-${user}`)?.endpointId).toBe(endpointId);
      }
      const sum = weights.reduce((total, weight) => total + weight, 0);
      for (const [index, weight] of weights.entries()) {
        expect(Math.abs((counts.get(`ep_${index}`) ?? 0) / users - weight / sum)).toBeLessThan(0.012);
        if (weight === 0) expect(counts.has(`ep_${index}`)).toBe(false);
      }
    }), { numRuns: 10 });
  });

  test('over many users the share of a canary is within 1 %', () => {
    const state = project(...two, split());
    let canary = 0;
    for (let user = 0; user < 200_000; user += 1) if (chosen(state, `user-${user}`)?.endpointId === 'ep_2') canary += 1;
    expect(Math.abs(canary / 200_000 - 0.05)).toBeLessThan(0.01 * 0.05 * 4);
  });

  test('a larger weight moves users to its target only, and a rollback moves all of them back at once', () => {
    const before = project(...two, split());
    const after = project(...two, split(), split({ targets: [{ endpointId: 'ep_1', weight: 80 }, { endpointId: 'ep_2', weight: 20 }] }));
    const rolledBack = project(...two, split(), split({ targets: [{ endpointId: 'ep_1', weight: 95 }, { endpointId: 'ep_2', weight: 0 }] }));
    for (let user = 0; user < 2_000; user += 1) {
      if (chosen(before, `u${user}`)?.endpointId === 'ep_2') expect(chosen(after, `u${user}`)?.endpointId).toBe('ep_2');
      expect(chosen(rolledBack, `u${user}`)?.endpointId).toBe('ep_1');
    }
  });

  test('who stays together is as the split says', () => {
    const at = (sticky: TrafficSplitSetV1['sticky'], caller: object) => {
      const state = project(...two, split({ sticky, targets: [{ endpointId: 'ep_1', weight: 1 }, { endpointId: 'ep_2', weight: 1 }] }));
      return new Set(Array.from({ length: 50 }, (_, index) => chooseEndpoint(state, 'assistant', { organisationId: 'org_1', requestId: `req_${index}`, ...caller })?.endpointId)).size;
    };
    expect([at('user', { user: 'anna' }), at('user', { session: 's' }), at('user', {})]).toEqual([1, 1, 2]);
    expect([at('session', { session: 's' }), at('session', { user: 'anna' }), at('session', {})]).toEqual([1, 1, 2]);
    expect([at('organisation', {}), at('request', { user: 'anna', session: 's' })]).toEqual([1, 2]);
  });

  test('an endpoint that was retired gets nothing; without any left the name is its own endpoint, or nothing', () => {
    const onlySecond = project(...two, split(), retire('ep_1'));
    for (let user = 0; user < 50; user += 1) expect(chosen(onlySecond, `u${user}`)?.endpointId).toBe('ep_2');
    expect(chosen(project(...two, split(), retire('ep_1'), retire('ep_2')), 'anna')).toBeUndefined();
    expect(chosen(project(...two, deploy('ep_3', 'assistant'), split(), retire('ep_1'), retire('ep_2')), 'anna')?.endpointId).toBe('ep_3');
    expect(chosen(project(...two, deploy('ep_3', 'assistant'), split(), { type: 'traffic-split.removed.v1', data: { splitId: example.splitId, reason: '' } }), 'anna')?.endpointId).toBe('ep_3');
  });

  test('an organisation\'s own endpoint hides a split for everybody, and its own split nobody else sees', () => {
    expect(chosen(project(...two, split(), deploy('ep_9', 'assistant', 'org_1')), 'anna')?.endpointId).toBe('ep_9');
    const own = project(...two, split({ organisationId: 'org_1' }));
    expect(chosen(own, 'anna')).toBeDefined();
    expect(chosen(own, 'anna', 'assistant', 'org_2')).toBeUndefined();
  });
});

describe('what makes no split', () => {
  const state = project(...two, deploy('ep_3', 'secret', 'org_2'), deploy('ep_4', 'tensors', null, { engine: 'onnx' }));
  const asked = (change: Partial<TrafficSplitRequest>): TrafficSplitRequest => ({ name: 'assistant', organisationId: null, targets: [{ endpoint: 'assistant-v1', weight: 1 }, { endpoint: 'ep_2', weight: 1 }], sticky: 'user', reason: '', ...change });

  test('names and ids become endpoints', () => {
    expect(checkTrafficSplit(asked({}), state)).toEqual({ kind: 'fits', targets: [{ endpointId: 'ep_1', weight: 1 }, { endpointId: 'ep_2', weight: 1 }] });
  });

  test.each([
    ['no target', { targets: [] }, 'targets'],
    ['no weight', { targets: [{ endpoint: 'ep_1', weight: 0 }] }, 'targets'],
    ['an unknown endpoint', { targets: [{ endpoint: 'ep_1', weight: 1 }, { endpoint: 'nobody', weight: 1 }] }, 'targets[1].endpoint'],
    ['somebody else\'s endpoint', { targets: [{ endpoint: 'ep_3', weight: 1 }] }, 'targets[0].endpoint'],
    ['an endpoint twice', { targets: [{ endpoint: 'ep_1', weight: 1 }, { endpoint: 'assistant-v1', weight: 1 }] }, 'targets[1].endpoint'],
    ['text and tensors', { targets: [{ endpoint: 'ep_1', weight: 1 }, { endpoint: 'ep_4', weight: 1 }] }, 'targets[1].endpoint'],
    ['a name that is everybody\'s', { name: 'assistant-v1', organisationId: 'org_1' }, 'name'],
  ] as const)('%s is refused with its field', (_name, change, param) => {
    expect(checkTrafficSplit(asked(change as Partial<TrafficSplitRequest>), state)).toMatchObject({ kind: 'refused', refusal: { param, message: expect.stringMatching(/.{20}/) } });
  });
});

describe('trafficSplitDecider', () => {
  const set = { type: 'traffic-split.set.v1' as const, data: example };
  test('sets, replaces, removes, and does nothing twice', () => {
    given(trafficSplitDecider).when({ kind: 'set', data: example }).then(set);
    given(trafficSplitDecider, set).when({ kind: 'set', data: example }).then();
    const other = { ...example, sticky: 'session' as const };
    given(trafficSplitDecider, set).when({ kind: 'set', data: other }).then({ type: 'traffic-split.set.v1', data: other });
    const removed = { type: 'traffic-split.removed.v1' as const, data: { splitId: example.splitId, reason: 'done' } };
    given(trafficSplitDecider, set).when({ kind: 'remove', reason: 'done' }).then(removed);
    given(trafficSplitDecider, set, removed).when({ kind: 'remove', reason: 'done' }).then();
    given(trafficSplitDecider, set, removed).when({ kind: 'set', data: example }).then(set);
    given(trafficSplitDecider).when({ kind: 'remove', reason: '' }).thenRefused('not_found');
  });
});

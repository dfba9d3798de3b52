import { describe, expect, test } from '@jest/globals';
import { endpointDeployedV1, modelVersionRegisteredV1, modelVersionSubmittedV1, type EndpointDeployedV1, type ModelVersionRegisteredV1, type ModelVersionSubmittedV1 } from '@penstock/contract-events';
import { endpointView, modelVersionView } from '@penstock/contract-commands';
import type { RecordedEvent } from '@penstock/kernel';
import fc from 'fast-check';
import { catalogProjection, RETIRED_ENDPOINTS_MAX } from './catalog-projection.js';
import { endpointsVisibleTo, findEndpointByName, type CatalogState, type ModelVersionState } from './catalog-state.js';
import { checkDeployment } from './check-deployment.js';
import { endpointRef } from './refs.js';
import { listEndpointViews, listModelVersionViews } from './views.js';

const submitted = modelVersionSubmittedV1.example as ModelVersionSubmittedV1;
const registered = modelVersionRegisteredV1.example as ModelVersionRegisteredV1;
const deployed = endpointDeployedV1.example as EndpointDeployedV1;

function recorded(events: readonly { readonly type: string; readonly data: unknown }[]): readonly RecordedEvent[] {
  return events.map((event, index) => ({
    ...event, id: `e.${index}`, source: 'test', time: new Date(1_000 * (index + 1)).toISOString(), ref: endpointRef('any'), stream: 'EV_REGISTRY', sequence: index + 1, correlationId: 'c', causationId: 'c',
  }));
}

function project(...events: readonly { readonly type: string; readonly data: unknown }[]): CatalogState {
  return recorded(events).reduce((state, event) => catalogProjection.apply(state, event), catalogProjection.initialState());
}

const deploy = (endpointId: string, name: string, organisationId: string | null) => ({ type: 'endpoint.deployed.v1', data: { ...deployed, endpointId, name, organisationId } });
const retire = (endpointId: string) => ({ type: 'endpoint.retired.v1', data: { endpointId, reason: 'gone' } });
const submit = { type: 'model-version.submitted.v1', data: submitted };
const register = { type: 'model-version.registered.v1', data: registered };

describe('catalogProjection', () => {
  test('follows a model version and shows it as the contract wants', () => {
    const state = project(submit, register);
    expect(state.modelVersions.get('mv_01')).toMatchObject({ status: 'registered', createdAtMs: 1_000, registered });
    const [view] = listModelVersionViews(state, { limit: 10 });
    expect(modelVersionView.parse(view)).toMatchObject({ digest: registered.artifacts[0]?.digest, totalBytes: 98_000_000, memoryBytes: 148_000_000, createdAt: '1970-01-01T00:00:01.000Z' });
  });

  test('a rejected version tells why, until it is submitted again', () => {
    const reject = { type: 'model-version.rejected.v1', data: { modelVersionId: 'mv_01', code: 'pull_failed', reason: 'no route' } };
    expect(project(submit, reject).modelVersions.get('mv_01')).toMatchObject({ status: 'rejected', rejection: 'no route' });
    expect(project(submit, reject, submit).modelVersions.get('mv_01')).toMatchObject({ status: 'submitted', rejection: null, createdAtMs: 3_000 });
  });

  test('an organisation sees its own endpoint before the shared one, and nobody else sees it', () => {
    const state = project(deploy('ep_shared', 'model', null), deploy('ep_a', 'model', 'org_a'), deploy('ep_b', 'private', 'org_b'));
    expect(findEndpointByName(state, 'model', 'org_a')?.endpointId).toBe('ep_a');
    expect(findEndpointByName(state, 'model', 'org_b')?.endpointId).toBe('ep_shared');
    expect(findEndpointByName(state, 'private', 'org_a')).toBeUndefined();
    expect(findEndpointByName(state, 'private', null)).toBeUndefined();
    expect(endpointsVisibleTo(state, 'org_a').map((endpoint) => endpoint.endpointId)).toEqual(['ep_a']);
    expect(endpointsVisibleTo(state, 'org_b').map((endpoint) => endpoint.endpointId)).toEqual(['ep_shared', 'ep_b']);
  });

  test('a retired endpoint gives its name free and is listed only when asked for', () => {
    const state = project(deploy('ep_1', 'model', null), retire('ep_1'), deploy('ep_2', 'model', null));
    expect(findEndpointByName(state, 'model', null)?.endpointId).toBe('ep_2');
    expect(state.generationByName.get('model')).toBe(2);
    expect(listEndpointViews(state, { includeRetired: false, limit: 10 }).map((view) => view.endpointId)).toEqual(['ep_2']);
    const all = listEndpointViews(state, { includeRetired: true, limit: 10 });
    expect(all.map((view) => [view.endpointId, view.status])).toEqual([['ep_2', 'active'], ['ep_1', 'retired']]);
    for (const view of all) expect(endpointView.safeParse(view).success).toBe(true);
  });

  test('keeps a bounded number of retired endpoints', () => {
    const events = Array.from({ length: RETIRED_ENDPOINTS_MAX + 5 }, (_, index) => [deploy(`ep_${index}`, `m${index}`, null), retire(`ep_${index}`)]).flat();
    const state = project(...events);
    expect(state.endpoints.size).toBe(RETIRED_ENDPOINTS_MAX);
    expect(state.endpoints.has('ep_4')).toBe(false);
    expect(state.endpoints.has('ep_5')).toBe(true);
  });

  test('property: any history, cut anywhere by a snapshot, gives the same state, and by-name finds active endpoints only', () => {
    const id = fc.constantFrom('ep_1', 'ep_2', 'ep_3');
    const event = fc.oneof(
      fc.tuple(id, fc.constantFrom('a', 'b'), fc.constantFrom(null, 'org_a')).map(([endpointId, name, organisation]) => deploy(endpointId, name, organisation)),
      id.map(retire),
      fc.constantFrom(submit, register, { type: 'model-version.rejected.v1', data: { modelVersionId: 'mv_01', code: 'c', reason: 'r' } }),
    );
    fc.assert(fc.property(fc.array(event, { maxLength: 40 }), fc.nat(40), (history, cut) => {
      const events = recorded(history);
      const straight = events.reduce((state, next) => catalogProjection.apply(state, next), catalogProjection.initialState());
      const before = events.slice(0, cut).reduce((state, next) => catalogProjection.apply(state, next), catalogProjection.initialState());
      const restored = catalogProjection.restore(JSON.parse(JSON.stringify(catalogProjection.snapshot(before))));
      const resumed = events.slice(cut).reduce((state, next) => catalogProjection.apply(state, next), restored);
      expect(new Map([...resumed.endpointIdByName].sort())).toEqual(new Map([...straight.endpointIdByName].sort()));
      expect(resumed.endpoints).toEqual(straight.endpoints);
      expect(resumed.modelVersions).toEqual(straight.modelVersions);
      expect(resumed.generationByName).toEqual(straight.generationByName);
      for (const endpointId of straight.endpointIdByName.values()) expect(straight.endpoints.get(endpointId)?.status).toBe('active');
    }));
  });
});

describe('checkDeployment', () => {
  const state = project(submit, register, deploy('ep_1', 'taken', null));
  const version = state.modelVersions.get('mv_01');
  const { endpointId: _endpointId, engine: _engine, ...request } = { ...deployed, name: 'fresh' };
  const param = (change: Partial<typeof request>, of: ModelVersionState | null | undefined = version) => {
    const check = checkDeployment({ ...request, ...change }, of ?? undefined, state);
    return check.kind === 'refused' ? check.refusal.param : undefined;
  };

  test('names the field at fault', () => {
    expect(param({})).toBeUndefined();
    expect(param({}, null)).toBe('modelVersionId');
    expect(param({ scaling: { ...request.scaling, minReplicas: 3, maxReplicas: 2 } })).toBe('scaling.minReplicas');
    expect(param({ serving: { ...request.serving, contextTokens: 4_096 } })).toBe('serving.contextTokens');
    expect(param({ name: 'taken', organisationId: 'org_a' })).toBe('name');
    expect(param({ name: 'taken' })).toBeUndefined();
  });

  test('a model version of one organisation serves that organisation only', () => {
    const own = version === undefined ? undefined : { ...version, organisationId: 'org_a' };
    expect(param({ organisationId: 'org_a' }, own)).toBeUndefined();
    expect(param({ organisationId: 'org_b' }, own)).toBe('modelVersionId');
    expect(param({ organisationId: null }, own)).toBe('modelVersionId');
  });
});

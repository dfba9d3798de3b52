import { describe, expect, test } from '@jest/globals';
import type { AccessLimits, ApiKeyCreatedV2, LimitsSetV1 } from '@penstock/contract-events';
import type { NewEvent, RecordedEvent } from '@penstock/kernel';
import { accessProjection, type AccessState } from './access-projection.js';
import { apiKeyDecider, type ApiKeyEvent } from './api-key.js';
import { authorise, hasScope, isOperator, mayCallModel, wasStopped } from './authorise.js';
import { redactKey } from './key-minter.js';
import { contextTokensMaxOf, limitsDecider, limitsOn, priorityTierOf } from './limits.js';
import { organisationDecider } from './organisation.js';
import { projectDecider } from './project.js';
import { defaultProjectId } from './refs.js';
import { serviceAccountDecider } from './service-account.js';

const NOW_MS = Date.parse('2026-11-29T12:00:00.000Z');
const key: ApiKeyCreatedV2 = {
  keyId: 'key_1', organisationId: 'org_1', projectId: 'proj_1', name: 'laptop', kind: 'inference', hmac: 'a'.repeat(64), prefix: 'sk-ps-Ab3d', lastFour: 'x9Yz', models: null, expiresAt: null,
  serviceAccountId: null, scopes: null, replacesKeyId: null,
};

function fold(events: readonly NewEvent[]): AccessState {
  return events.reduce<AccessState>(
    (state, event, index) => accessProjection.apply(state, { ...event, id: `e.${index}`, time: '2026-11-29T12:00:00.000Z', sequence: index + 1, stream: 'EV_ACCESS' } as RecordedEvent),
    accessProjection.initialState(),
  );
}

const NONE: AccessLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null, contextTokensMax: null, priorityTier: null };

function limitsOf(subject: LimitsSetV1['subject'], subjectId: string, model: string | null, limits: Partial<AccessLimits>): LimitsSetV1 {
  return { subject, subjectId, organisationId: 'org_1', model, limits: { ...NONE, ...limits } };
}

describe('limits', () => {
  const principal = { kind: 'inference', organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', models: null } as const;

  test('are set for a subject and a model, replaced, and taken away', () => {
    const set = limitsOf('project', 'proj_1', null, { requestsPerMinute: 10 });
    const decided = limitsDecider.decide({ kind: 'set', ...set }, new Map());
    expect(decided).toEqual({ kind: 'accepted', events: [{ type: 'limits.set.v1', data: set }] });
    const state = limitsDecider.evolve(new Map(), { type: 'limits.set.v1', data: set });
    expect(limitsDecider.decide({ kind: 'set', ...set }, state)).toEqual({ kind: 'accepted', events: [] });
    expect(limitsDecider.decide({ kind: 'set', ...limitsOf('project', 'proj_1', 'a', {}) }, state)).toEqual({ kind: 'accepted', events: [] });
    expect(limitsDecider.evolve(state, { type: 'limits.set.v1', data: limitsOf('project', 'proj_1', null, {}) }).size).toBe(0);
  });

  test('of the organisation, the project and the key all hold, for all models and for the one', () => {
    const sets = [
      limitsOf('organisation', 'org_1', null, { contextTokensMax: 4_000, priorityTier: 'paid' }), limitsOf('project', 'proj_1', 'a', { contextTokensMax: 2_000 }),
      limitsOf('key', 'key_1', 'b', { contextTokensMax: 1_000 }), limitsOf('key', 'key_1', null, { priorityTier: 'batch' }), limitsOf('key', 'key_2', null, { contextTokensMax: 1 }),
    ];
    const access = fold(sets.map((data) => ({ type: 'limits.set.v1', data })));
    const onA = limitsOn(access, principal, { name: 'a' });
    expect(onA).toEqual([sets[0], sets[1], sets[3]]);
    expect([contextTokensMaxOf(onA), priorityTierOf(onA)]).toEqual([2_000, 'batch']);
    expect(contextTokensMaxOf(limitsOn(access, principal, { name: 'b' }))).toBe(1_000);
    expect(limitsOn(fold([]), principal, { name: 'a' })).toEqual([]);
    // An adapter is under the limits of its base and its own; a model whose name has a colon is no adapter.
    const ofAdapter = limitsOf('key', 'key_1', 'a:sql', { contextTokensMax: 500 });
    const withAdapter = fold([...sets, ofAdapter].map((data) => ({ type: 'limits.set.v1', data })));
    expect(limitsOn(withAdapter, principal, { name: 'a:sql', adapter: 'sql' })).toEqual([sets[0], sets[1], sets[3], ofAdapter]);
    expect(limitsOn(withAdapter, principal, { name: 'a:sql' })).toEqual([sets[0], sets[3], ofAdapter]);
  });
});

describe('organisations and projects', () => {
  test('are created once; the same again changes nothing, other settings are refused', () => {
    const create = { kind: 'create', organisationId: 'org_1', name: 'Acme' } as const;
    expect(organisationDecider.decide(create, null)).toEqual({ kind: 'accepted', events: [{ type: 'organisation.created.v1', data: { organisationId: 'org_1', name: 'Acme' } }] });
    expect(organisationDecider.decide(create, { organisationId: 'org_1', name: 'Acme', suspended: false })).toEqual({ kind: 'accepted', events: [] });
    expect(organisationDecider.decide({ ...create, name: 'Other' }, { organisationId: 'org_1', name: 'Acme', suspended: false })).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists', param: 'name' } });
    const project = { projectId: 'proj_1', organisationId: 'org_1', name: 'default' };
    expect(projectDecider.decide({ kind: 'create', ...project }, null)).toMatchObject({ kind: 'accepted', events: [{ data: project }] });
    expect(projectDecider.decide({ kind: 'create', ...project, organisationId: 'org_2' }, project)).toMatchObject({ kind: 'refused' });
    expect(defaultProjectId('org_1')).toBe('proj_1');
  });

  test('are suspended and resumed in turn; the operator\'s own never is, and every key of one that is stops meanwhile', () => {
    const acme = { organisationId: 'org_1', name: 'Acme', suspended: false };
    const suspend = { kind: 'suspend', reason: 'overdue' } as const;
    expect(organisationDecider.decide(suspend, acme)).toEqual({ kind: 'accepted', events: [{ type: 'organisation.suspended.v1', data: { organisationId: 'org_1', reason: 'overdue' } }] });
    expect(organisationDecider.decide(suspend, { ...acme, suspended: true })).toEqual({ kind: 'accepted', events: [] });
    expect(organisationDecider.decide({ kind: 'resume', reason: 'paid' }, acme)).toEqual({ kind: 'accepted', events: [] });
    expect(organisationDecider.decide(suspend, { ...acme, organisationId: 'org_root' })).toMatchObject({ kind: 'refused' });
    expect(organisationDecider.decide(suspend, null)).toMatchObject({ kind: 'refused', refusal: { code: 'not_found' } });
    const history: NewEvent[] = [{ type: 'organisation.created.v1', data: { organisationId: 'org_1', name: 'Acme' } }, { type: 'api-key.created.v2', data: key }, { type: 'organisation.suspended.v1', data: { organisationId: 'org_1', reason: 'overdue' } }];
    const suspended = fold(history);
    expect(authorise(suspended, key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    expect(authorise(accessProjection.restore(JSON.parse(JSON.stringify(accessProjection.snapshot(suspended)))), key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    expect(wasStopped(suspended, key.keyId)).toBe(true);
    const resumed = fold([...history, { type: 'organisation.resumed.v1', data: { organisationId: 'org_1', reason: 'paid' } }]);
    expect([authorise(resumed, key.hmac, NOW_MS).kind, wasStopped(resumed, key.keyId)]).toEqual(['authorised', false]);
  });
});

describe('keys', () => {
  const created: ApiKeyEvent = { type: 'api-key.created.v2', data: key };
  const state = apiKeyDecider.evolve(null, created);

  test('are created once, not in the past, and revoked once', () => {
    expect(apiKeyDecider.decide({ kind: 'create', key, nowMs: NOW_MS }, null)).toEqual({ kind: 'accepted', events: [created] });
    expect(apiKeyDecider.decide({ kind: 'create', key: { ...key, expiresAt: '2026-11-29T12:00:00.000Z' }, nowMs: NOW_MS }, null)).toMatchObject({ kind: 'refused', refusal: { param: 'expires_at' } });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, state)).toMatchObject({ kind: 'accepted', events: [{ type: 'api-key.revoked.v1' }] });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, { key, replacedByKeyId: null, revoked: true })).toEqual({ kind: 'accepted', events: [] });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, null)).toMatchObject({ kind: 'refused', refusal: { code: 'not_found' } });
  });

  test('authorise by HMAC until they expire or are revoked', () => {
    const expiring = { ...key, keyId: 'key_2', hmac: 'b'.repeat(64), expiresAt: '2026-11-29T13:00:00.000Z' };
    const access = fold([created, { type: 'api-key.created.v2', data: expiring }]);
    expect(authorise(access, key.hmac, NOW_MS)).toMatchObject({ kind: 'authorised', principal: { organisationId: 'org_1', keyId: 'key_1' } });
    expect(authorise(access, 'c'.repeat(64), NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    expect(authorise(access, expiring.hmac, NOW_MS)).toMatchObject({ kind: 'authorised' });
    expect(authorise(access, expiring.hmac, NOW_MS + 3_600_000)).toEqual({ kind: 'refused', reason: 'expired' });
    const revoked = fold([created, { type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason: 'rotated' } }]);
    expect(authorise(revoked, key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
  });

  test('rotation lets the old key work until the overlap ends, once', () => {
    const rotated = apiKeyDecider.decide({ kind: 'rotate', replacedByKeyId: 'key_2', nowMs: NOW_MS, overlapMs: 60_000 }, state);
    expect(rotated).toMatchObject({ kind: 'accepted', events: [{ type: 'api-key.rotated.v1', data: { keyId: 'key_1', worksUntil: '2026-11-29T12:01:00.000Z' } }] });
    if (rotated.kind !== 'accepted') return;
    const after = rotated.events.reduce(apiKeyDecider.evolve, state);
    expect(apiKeyDecider.decide({ kind: 'rotate', replacedByKeyId: 'key_3', nowMs: NOW_MS, overlapMs: 0 }, after)).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists' } });
    const access = fold([created, ...rotated.events]);
    expect(authorise(access, key.hmac, NOW_MS + 59_999)).toMatchObject({ kind: 'authorised' });
    expect(authorise(access, key.hmac, NOW_MS + 60_000)).toEqual({ kind: 'refused', reason: 'expired' });
    expect(apiKeyDecider.decide({ kind: 'rotate', replacedByKeyId: 'key_2', nowMs: NOW_MS, overlapMs: -1 }, state)).toMatchObject({ kind: 'refused', refusal: { param: 'overlap_seconds' } });
    expect(apiKeyDecider.decide({ kind: 'rotate', replacedByKeyId: 'key_2', nowMs: NOW_MS, overlapMs: 0 }, { key, replacedByKeyId: null, revoked: true })).toMatchObject({ kind: 'refused' });
  });

  test('stop with their service account, and one of an account that nobody knows never works', () => {
    const account: NewEvent = { type: 'service-account.created.v1', data: { serviceAccountId: 'sa_1', organisationId: 'org_1', projectId: 'proj_1', name: 'reports' } };
    const ofAccount: NewEvent = { type: 'api-key.created.v2', data: { ...key, serviceAccountId: 'sa_1', scopes: ['files'] } };
    expect(authorise(fold([account, ofAccount]), key.hmac, NOW_MS)).toMatchObject({ principal: { scopes: ['files'] } });
    expect(authorise(fold([ofAccount]), key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    expect(authorise(fold([account, ofAccount, { type: 'service-account.disabled.v1', data: { serviceAccountId: 'sa_1', reason: 'gone' } }]), key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    const disabled = serviceAccountDecider.decide({ kind: 'disable', reason: 'gone' }, { serviceAccountId: 'sa_1', organisationId: 'org_1', projectId: 'proj_1', name: 'reports', disabled: true });
    expect(disabled).toEqual({ kind: 'accepted', events: [] });
  });

  test('show when they were last used, whatever the order of the notes', () => {
    const note = (usedAt: string): NewEvent => ({ type: 'key-uses.noted.v1', data: { gatewayId: 'inst_1', uses: [{ keyId: 'key_1', usedAt }, { keyId: 'key_unknown', usedAt }] } });
    const access = fold([created, note('2026-11-29T12:00:00.000Z'), note('2026-11-29T11:00:00.000Z')]);
    expect(access.keys.get('key_1')?.lastUsedAtMs).toBe(NOW_MS);
  });

  test('a snapshot restores to the same look-ups', () => {
    const access = fold([created, { type: 'limits.set.v1', data: limitsOf('key', 'key_1', 'a', { concurrency: 2 }) }]);
    const restored = accessProjection.restore(JSON.parse(JSON.stringify(accessProjection.snapshot(access))));
    expect(restored).toEqual(access);
  });

  test('a key limited to models calls no other; operators are the root organisation alone', () => {
    const principal = { kind: 'admin', organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', models: ['a'] } as const;
    expect([hasScope(principal, 'files'), hasScope({ ...principal, scopes: ['files'] }, 'files'), hasScope({ ...principal, scopes: ['files'] }, 'inference')]).toEqual([true, true, false]);
    expect([mayCallModel(principal, 'a'), mayCallModel(principal, 'b'), mayCallModel({ ...principal, models: null }, 'b')]).toEqual([true, false, true]);
    expect([isOperator(principal), isOperator({ ...principal, organisationId: 'org_root' }), isOperator({ ...principal, kind: 'inference', organisationId: 'org_root' }), isOperator({ ...principal, kind: 'root' })]).toEqual([false, true, false, true]);
  });

  test('a redacted key gives nothing away that would help to guess it', () => {
    expect(redactKey(`sk-ps-${'x'.repeat(39)}abcd`)).toBe('sk-ps-xxxx…abcd');
    expect(redactKey('short-secret')).toBe('***');
  });
});

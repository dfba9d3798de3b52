import { describe, expect, test } from '@jest/globals';
import type { ApiKeyCreatedV1 } from '@penstock/contract-events';
import type { NewEvent, RecordedEvent } from '@penstock/kernel';
import { accessProjection, type AccessState } from './access-projection.js';
import { apiKeyDecider, type ApiKeyEvent } from './api-key.js';
import { authorise, isOperator, mayCallModel } from './authorise.js';
import { redactKey } from './key-minter.js';
import { organisationDecider } from './organisation.js';
import { projectDecider } from './project.js';
import { defaultProjectId } from './refs.js';

const NOW_MS = Date.parse('2026-11-29T12:00:00.000Z');
const key: ApiKeyCreatedV1 = {
  keyId: 'key_1', organisationId: 'org_1', projectId: 'proj_1', name: 'laptop', kind: 'inference', hmac: 'a'.repeat(64), prefix: 'sk-ps-Ab3d', lastFour: 'x9Yz', models: null, expiresAt: null,
};

function fold(events: readonly NewEvent[]): AccessState {
  return events.reduce<AccessState>(
    (state, event, index) => accessProjection.apply(state, { ...event, id: `e.${index}`, time: '2026-11-29T12:00:00.000Z', sequence: index + 1, stream: 'EV_ACCESS' } as RecordedEvent),
    accessProjection.initialState(),
  );
}

describe('organisations and projects', () => {
  test('are created once; the same again changes nothing, other settings are refused', () => {
    const create = { kind: 'create', organisationId: 'org_1', name: 'Acme' } as const;
    expect(organisationDecider.decide(create, null)).toEqual({ kind: 'accepted', events: [{ type: 'organisation.created.v1', data: { organisationId: 'org_1', name: 'Acme' } }] });
    expect(organisationDecider.decide(create, { organisationId: 'org_1', name: 'Acme' })).toEqual({ kind: 'accepted', events: [] });
    expect(organisationDecider.decide({ ...create, name: 'Other' }, { organisationId: 'org_1', name: 'Acme' })).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists', param: 'name' } });
    const project = { projectId: 'proj_1', organisationId: 'org_1', name: 'default' };
    expect(projectDecider.decide({ kind: 'create', ...project }, null)).toMatchObject({ kind: 'accepted', events: [{ data: project }] });
    expect(projectDecider.decide({ kind: 'create', ...project, organisationId: 'org_2' }, project)).toMatchObject({ kind: 'refused' });
    expect(defaultProjectId('org_1')).toBe('proj_1');
  });
});

describe('keys', () => {
  const created: ApiKeyEvent = { type: 'api-key.created.v1', data: key };
  const state = apiKeyDecider.evolve(null, created);

  test('are created once, not in the past, and revoked once', () => {
    expect(apiKeyDecider.decide({ kind: 'create', key, nowMs: NOW_MS }, null)).toEqual({ kind: 'accepted', events: [created] });
    expect(apiKeyDecider.decide({ kind: 'create', key: { ...key, expiresAt: '2026-11-29T12:00:00.000Z' }, nowMs: NOW_MS }, null)).toMatchObject({ kind: 'refused', refusal: { param: 'expires_at' } });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, state)).toMatchObject({ kind: 'accepted', events: [{ type: 'api-key.revoked.v1' }] });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, { key, revoked: true })).toEqual({ kind: 'accepted', events: [] });
    expect(apiKeyDecider.decide({ kind: 'revoke', reason: 'rotated' }, null)).toMatchObject({ kind: 'refused', refusal: { code: 'not_found' } });
  });

  test('authorise by HMAC until they expire or are revoked', () => {
    const expiring = { ...key, keyId: 'key_2', hmac: 'b'.repeat(64), expiresAt: '2026-11-29T13:00:00.000Z' };
    const access = fold([created, { type: 'api-key.created.v1', data: expiring }]);
    expect(authorise(access, key.hmac, NOW_MS)).toMatchObject({ kind: 'authorised', principal: { organisationId: 'org_1', keyId: 'key_1' } });
    expect(authorise(access, 'c'.repeat(64), NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
    expect(authorise(access, expiring.hmac, NOW_MS)).toMatchObject({ kind: 'authorised' });
    expect(authorise(access, expiring.hmac, NOW_MS + 3_600_000)).toEqual({ kind: 'refused', reason: 'expired' });
    const revoked = fold([created, { type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason: 'rotated' } }]);
    expect(authorise(revoked, key.hmac, NOW_MS)).toEqual({ kind: 'refused', reason: 'invalid' });
  });

  test('a snapshot restores to the same look-ups', () => {
    const access = fold([created]);
    const restored = accessProjection.restore(JSON.parse(JSON.stringify(accessProjection.snapshot(access))));
    expect(restored).toEqual(access);
  });

  test('a key limited to models calls no other; operators are the root organisation alone', () => {
    const principal = { kind: 'admin', organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', models: ['a'] } as const;
    expect([mayCallModel(principal, 'a'), mayCallModel(principal, 'b'), mayCallModel({ ...principal, models: null }, 'b')]).toEqual([true, false, true]);
    expect([isOperator(principal), isOperator({ ...principal, organisationId: 'org_root' }), isOperator({ ...principal, kind: 'inference', organisationId: 'org_root' }), isOperator({ ...principal, kind: 'root' })]).toEqual([false, true, false, true]);
  });

  test('a redacted key gives nothing away that would help to guess it', () => {
    expect(redactKey(`sk-ps-${'x'.repeat(39)}abcd`)).toBe('sk-ps-xxxx…abcd');
    expect(redactKey('short-secret')).toBe('***');
  });
});

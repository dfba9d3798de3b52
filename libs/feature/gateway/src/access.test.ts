import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@penstock/testing-kit';
import { startWorld, type World } from './gateway-world-suite.js';

interface Key { readonly id: string; readonly key: string; readonly expires_at: number | null; readonly replaced_by: string | null; readonly last_used_at: number | null }

let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.serveRouter();
});
afterAll(() => world.close());

async function post<Body>(path: string, body: object, key?: string): Promise<{ status: number; body: Body }> {
  const response = await world.fetch(path, { method: 'POST', body: JSON.stringify(body), ...(key === undefined ? {} : { key }) });
  return { status: response.status, body: await response.json() as Body };
}

const makeKey = async (settings: object) => (await post<Key>('/admin/v1/keys', { name: 'k', ...settings })).body;
const statusOf = async (path: string, key: string) => (await world.fetch(path, { key })).status;

describe('scopes', () => {
  test('narrow a key to what they name, on every gateway route', async () => {
    const { key } = await makeKey({ scopes: ['files', 'models.read'] });
    expect(await statusOf('/v1/models', key)).toBe(200);
    const refused = await post<{ error: { code: string; message: string } }>('/v1/chat/completions', { model: 'public-model', messages: [{ role: 'user', content: 'hi' }] }, key);
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'insufficient_permissions', message: expect.stringContaining(`'inference'`) } } });
    const { key: reader } = await makeKey({ kind: 'admin', scopes: ['keys.read'] });
    expect([await statusOf('/admin/v1/keys', reader), await statusOf('/admin/v1/limits', reader), await statusOf('/admin/v1/events', reader)]).toEqual([200, 403, 403]);
  });

  test('are not handed on by a key that lacks them, nor given where they mean nothing', async () => {
    const { key } = await makeKey({ kind: 'admin', scopes: ['keys.write', 'keys.read'] });
    expect((await post('/admin/v1/keys', { name: 'more', kind: 'admin', scopes: ['limits.write'] }, key)).status).toBe(403);
    expect((await post('/admin/v1/keys', { name: 'all', kind: 'admin' }, key)).status).toBe(403);
    expect((await post('/admin/v1/keys', { name: 'same', kind: 'admin', scopes: ['keys.read'] }, key)).status).toBe(201);
    expect(await post('/admin/v1/keys', { name: 'odd', kind: 'inference', scopes: ['limits.write'] })).toMatchObject({ status: 400, body: { param: 'scopes[0]' } });
  });
});

describe('rotation', () => {
  test('makes a successor with the same rights; the old key works until the overlap ends', async () => {
    const old = await makeKey({ scopes: ['models.read'] });
    const rotated = await post<Key & { scopes: string[] }>(`/admin/v1/keys/${old.id}/rotate`, { overlap_seconds: 3_600 });
    expect(rotated).toMatchObject({ status: 201, body: { scopes: ['models.read'], expires_at: null } });
    expect([await statusOf('/v1/models', old.key), await statusOf('/v1/models', rotated.body.key)]).toEqual([200, 200]);
    const listed = (await (await world.fetch('/admin/v1/keys')).json() as { data: Key[] }).data.find((key) => key.id === old.id);
    expect(listed).toMatchObject({ replaced_by: rotated.body.id, expires_at: expect.any(Number) });
    expect((await post(`/admin/v1/keys/${old.id}/rotate`, {})).status).toBe(400);
    const gone = await post<Key>(`/admin/v1/keys/${rotated.body.id}/rotate`, { overlap_seconds: 0 });
    expect([await statusOf('/v1/models', rotated.body.key), await statusOf('/v1/models', gone.body.key)]).toEqual([401, 200]);
  });

  test('of one key many times at once leaves one successor that works', async () => {
    const old = await makeKey({});
    const answers = await Promise.all(Array.from({ length: 8 }, () => post<Key>(`/admin/v1/keys/${old.id}/rotate`, { overlap_seconds: 60 })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    const { data } = await (await world.fetch('/admin/v1/keys')).json() as { data: (Key & { revoked_at: number | null; name: string; created_at: number })[] };
    const successor = answers.find(({ status }) => status === 201)?.body.id;
    expect(data.find((key) => key.id === old.id)?.replaced_by).toBe(successor);
    expect(data.find((key) => key.id === successor)?.revoked_at).toBeNull();
  });
});

describe('service accounts', () => {
  test('have keys of their own that stop together', async () => {
    const account = (await post<{ id: string; project_id: string }>('/admin/v1/service-accounts', { name: 'nightly' })).body;
    const keys = await Promise.all([makeKey({ service_account_id: account.id }), makeKey({ service_account_id: account.id, scopes: ['models.read'] })]);
    expect(await Promise.all(keys.map(({ key }) => statusOf('/v1/models', key)))).toEqual([200, 200]);
    const disabled = await world.fetch(`/admin/v1/service-accounts/${account.id}`, { method: 'DELETE' });
    expect(await disabled.json()).toMatchObject({ id: account.id, disabled_at: expect.any(Number) });
    expect(await Promise.all(keys.map(({ key }) => statusOf('/v1/models', key)))).toEqual([401, 401]);
    expect((await post('/admin/v1/keys', { name: 'late', service_account_id: account.id })).status).toBe(400);
    expect((await post('/admin/v1/keys', { name: 'none', service_account_id: 'sa_unknown' })).status).toBe(404);
  });
});

test('a suspended organisation may do nothing with any key, until it is resumed; nobody but the operator suspends one', async () => {
  const { id, suspended_at: before } = (await post<{ id: string; suspended_at: number | null }>('/admin/v1/organisations', { name: 'Late payer' })).body;
  const projectId = `proj_${id.slice(4)}`;
  const [inference, admin] = [await makeKey({ project_id: projectId }), await makeKey({ project_id: projectId, kind: 'admin' })];
  const statuses = async () => [await statusOf('/v1/models', inference.key), await statusOf('/admin/v1/keys', admin.key), (await world.chat({}, { headers: { authorization: `Bearer ${inference.key}` } })).status];
  expect([before, await statuses()]).toEqual([null, [200, 200, 200]]);
  expect((await post(`/admin/v1/organisations/${id}/suspend`, { reason: 'by itself' }, admin.key)).status).toBe(403);
  expect(await post(`/admin/v1/organisations/${id}/suspend`, { reason: 'overdue' })).toMatchObject({ status: 200, body: { id, suspended_at: expect.any(Number) } });
  expect(await statuses()).toEqual([401, 401, 401]);
  expect(await statusOf('/v1/models', world.key)).toBe(200);
  expect(await post(`/admin/v1/organisations/${id}/resume`, { reason: 'paid' })).toMatchObject({ status: 200, body: { id, suspended_at: null } });
  expect(await statuses()).toEqual([200, 200, 200]);
  expect((await post('/admin/v1/organisations/org_root/suspend', { reason: 'a slip' })).status).toBe(400);
  expect((await post('/admin/v1/organisations/org_unknown/suspend', { reason: 'who?' })).status).toBe(404);
});

test('a key shows when it was used, and the log learns of many uses in one event', async () => {
  const other = await startWorld();
  const { key } = await (await other.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'used' }) })).json() as Key;
  for (let count = 0; count < 20; count += 1) await other.fetch('/v1/models', { key });
  const { data } = await (await other.fetch('/admin/v1/keys')).json() as { data: (Key & { name: string })[] };
  expect(data.find(({ name }) => name === 'used')?.last_used_at).toEqual(expect.any(Number));
  expect(data.find(({ name }) => name === 'test')?.last_used_at).toBeNull();
  await other.close();
  const noted = await eventually(() => other.log.all('EV_ACCESS').filter(({ type }) => type === 'key-uses.noted.v1'), (events) => events.length > 0);
  expect(noted).toHaveLength(1);
});

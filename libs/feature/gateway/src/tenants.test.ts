import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { cancelBatch, createBatch, deleteFile, getBatch, getFile, getRequestUsage } from '@penstock/contract-commands';
import { routes } from '@penstock/contract-http';
import { startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeEach(async () => {
  world = await startWorld({ slots: 64 });
  world.serveRouter();
});
afterEach(() => world.close());

interface Tenant {
  readonly organisationId: string;
  readonly key: string;
}

async function tenant(name: string): Promise<Tenant> {
  const { id: organisationId } = await (await post('/admin/v1/organisations', { name })).json() as { id: string };
  const { key } = await (await post('/admin/v1/keys', { name, project_id: `proj_${organisationId.slice(4)}` })).json() as { key: string };
  return { organisationId, key };
}

const post = (path: string, body: object, key?: string, headers?: Record<string, string>) => world.fetch(path, { method: 'POST', body: JSON.stringify(body), ...(key === undefined ? {} : { key }), ...(headers === undefined ? {} : { headers }) });

/** Files, jobs and usage of one organisation, as their services keep them: nothing is found for another one. */
function serveThingsOf(owner: string): void {
  const refuse = (code: string) => ({ kind: 'refused' as const, refusal: { code, message: 'Not found.' } });
  const owned = (code: string) => ({ organisationId }: { readonly organisationId?: string | undefined }) => {
    if (organisationId !== owner) return refuse(code);
    throw new Error('the owner does not ask here');
  };
  world.commands.serve(getFile, owned('file_not_found'));
  world.commands.serve(deleteFile, owned('file_not_found'));
  world.commands.serve(getBatch, owned('batch_not_found'));
  world.commands.serve(cancelBatch, owned('batch_not_found'));
  world.commands.serve(createBatch, owned('file_not_found'));
  world.commands.serve(getRequestUsage, () => ({ kind: 'ok', value: { record: null } }));
}

/** One thing of each kind that a path of the API can name by its id. */
async function thingsOf({ organisationId, key }: Tenant): Promise<Readonly<Record<string, string>>> {
  const response = await (await post('/v1/responses', { model: 'public-model', input: 'hi', store: true }, key)).json() as { id: string };
  const upload = await (await post('/v1/uploads', { filename: 'in.jsonl', purpose: 'batch', bytes: 4, mime_type: 'application/jsonl' }, key)).json() as { id: string };
  const chat = { model: 'public-model', messages: [{ role: 'user', content: 'hi' }] };
  const later = await (await post('/v1/chat/completions', chat, key, { prefer: 'respond-async' })).json() as { id: string };
  await post('/admin/v1/limits', { subject_id: organisationId, tokens_per_minute: 1 });
  const refused = await post('/v1/chat/completions', chat, key);
  expect(refused.status).toBe(429);
  return { response_id: response.id, upload_id: upload.id, async_id: later.id, request_id: refused.headers.get('x-request-id') ?? '', file_id: 'file_of_one', batch_id: 'batch_of_one' };
}

const bodyOf = (path: string): object | undefined => (path.endsWith('/complete') ? { part_ids: ['part_1'] } : undefined);

test('whatever a path names by its id is, to another tenant, like what never was', async () => {
  const [one, two] = [await tenant('One'), await tenant('Two')];
  serveThingsOf(one.organisationId);
  const things = await thingsOf(one);
  const ask = async (method: string, path: string, id: string, key: string): Promise<readonly [number, string]> => {
    const body = path.endsWith('/parts') ? new FormData() : bodyOf(path) === undefined ? undefined : JSON.stringify(bodyOf(path));
    if (body instanceof FormData) body.set('data', new Blob(['ab']), 'part');
    const answer = await world.fetch(path.replace(/\{\w+\}/, id), { method, key, ...(body === undefined ? {} : { body }) });
    return [answer.status, (await answer.text()).replaceAll(id, 'ID')];
  };
  const named = routes.filter(({ path, access }) => access !== 'admin' && Object.keys(things).some((name) => path.includes(`{${name}}`)));
  expect(named.length).toBeGreaterThanOrEqual(13);
  for (const { method, path } of named) {
    const name = /\{(\w+)\}/.exec(path)?.[1] ?? '';
    const id = things[name] ?? '';
    const foreign = await ask(method, path, id, two.key);
    // As long and as well formed as the id that exists.
    const unknown = await ask(method, path, id.replace(/.$/, (last) => (last === '0' ? '1' : '0')), two.key);
    expect([method, path, ...foreign]).toEqual([method, path, 404, unknown[1]]);
    expect(unknown[0]).toBe(404);
  }
  // They are there, and still are after all of that.
  for (const path of ['/v1/responses/{response_id}', '/v1/responses/{response_id}/input_items', '/v1/async/{async_id}', '/v1/requests/{request_id}']) {
    const id = things[/\{(\w+)\}/.exec(path)?.[1] ?? ''] ?? '';
    expect([path, (await ask('GET', path, id, one.key))[0]]).toEqual([path, 200]);
  }
  expect((await ask('POST', '/v1/uploads/{upload_id}/cancel', things['upload_id'] ?? '', one.key))[0]).toBe(200);
});

test('nobody goes on from a response, or makes a job of a file, of another tenant', async () => {
  const [one, two] = [await tenant('One'), await tenant('Two')];
  serveThingsOf(one.organisationId);
  const { response_id: responseId } = await thingsOf(one);
  const goOn = async (previous: string) => {
    const answer = await post('/v1/responses', { model: 'public-model', input: 'and?', previous_response_id: previous }, two.key);
    return [answer.status, (await answer.text()).replaceAll(previous, 'ID')];
  };
  expect(await goOn(responseId ?? '')).toEqual(await goOn(`${responseId?.slice(0, -1)}x`));
  expect((await post('/v1/batches', { input_file_id: 'file_of_one', endpoint: '/v1/chat/completions', completion_window: '24h' }, two.key)).status).toBe(404);
});

import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deleteFile, getFile, listFiles, queryUsage, registerFile, type FileObject } from '@penstock/contract-commands';
import { openAiErrorBody, problemBody, routes, tensorErrorBody } from '@penstock/contract-http';
import { ADMIN_KEY, deploy, startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.serveRouter();
});
afterAll(() => world.close());

const pathOf = (path: string) => path.replaceAll(/\{\w+\}/g, 'x');
const keyFor = (access: string) => (access === 'inference' ? world.key : ADMIN_KEY);

async function expectFault(response: Response, path: string, statuses: readonly number[]): Promise<string> {
  const text = await response.text();
  expect(statuses).toContain(response.status);
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  if (path.startsWith('/admin')) {
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    return problemBody.parse(JSON.parse(text)).code;
  }
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  if (path.startsWith('/v2')) return tensorErrorBody.parse(JSON.parse(text)).code;
  return openAiErrorBody.parse(JSON.parse(text)).error.code ?? '';
}

describe('every route', () => {
  test.each(routes.filter((route) => route.access !== 'none').map((route) => [`${route.method} ${route.path}`, route] as const))('%s is closed without the right key', async (_name, { method, path, access }) => {
    const url = pathOf(path);
    expect(await expectFault(await world.fetch(url, { method, key: null }), url, [401])).toBe('missing_api_key');
    expect(await expectFault(await world.fetch(url, { method, key: `sk-ps-${'x'.repeat(43)}` }), url, [401])).toBe('invalid_api_key');
    if (access === 'admin') expect(await expectFault(await world.fetch(url, { method, key: world.key }), url, [403])).toBe('insufficient_permissions');
  });

  test('only the documentation is open to everybody, and it loads nothing from elsewhere', async () => {
    expect(routes.filter((route) => route.access === 'none').map((route) => route.path)).toEqual(['/docs', '/docs/openapi.json']);
    const page = await world.fetch('/docs', { key: null });
    expect([page.status, page.headers.get('content-type'), page.headers.get('content-security-policy')]).toEqual([200, 'text/html; charset=utf-8', `default-src 'none'; style-src 'unsafe-inline'`]);
    const html = await page.text();
    expect(html.match(/(?:src|href)="[^"]*"/g)).toEqual(['href="/docs/openapi.json"']);
    for (const route of routes) expect(html).toContain(`<code>${route.path}</code>`);
    expect(await (await world.fetch('/docs/openapi.json', { key: null })).json()).toMatchObject({ openapi: '3.1.0' });
  });

  const withBody = routes.filter((route) => route.body !== undefined && route.bodyKind !== 'tensor');
  test.each(withBody.map((route) => [`${route.method} ${route.path}`, route] as const))('%s refuses bad bodies', async (_name, { method, path, access }) => {
    const url = pathOf(path);
    const send = (body: string | Buffer, type = 'application/json') => world.fetch(url, { method, key: keyFor(access), body: body as NonNullable<RequestInit['body']>, headers: { 'content-type': type } });
    expect(await expectFault(await send('{"a":'), url, [400])).toBe('invalid_json');
    expect(await expectFault(await send(''), url, [400])).toBe('invalid_json');
    expect(await expectFault(await send(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), url, [400])).toBe('invalid_json');
    expect(await expectFault(await send(`{"a":${'['.repeat(90_000)}${']'.repeat(90_000)}}`), url, [400])).toBe('json_too_deep');
    expect(await expectFault(await send(JSON.stringify({ a: 'x'.repeat(300_000) })), url, [413])).toBe('body_too_large');
    expect(await expectFault(await send('a=1', 'application/x-www-form-urlencoded'), url, [415])).toBe('unsupported_media_type');
    for (const wrong of ['[]', 'null', '7', '"text"']) expect(await expectFault(await send(wrong), url, [400])).toBe('invalid_type');
  });

  const withQuery = routes.filter((route) => route.query !== undefined && route.path !== '/admin/v1/progress');
  test.each(withQuery.map((route) => [`${route.method} ${route.path}`, route] as const))('%s refuses bad queries', async (_name, { path, access }) => {
    const url = pathOf(path);
    const code = await expectFault(await world.fetch(`${url}?limit=0&start_time=0`, { key: keyFor(access) }), url, [400]);
    expect(code).toBe('integer_below_min_value');
  });
});

describe('paths', () => {
  test.each(['/v1/unknown', '/', '/admin', '/admin/v1/unknown', '/v1/chat/completions/', '//v1/models', '/v1//models', '/V1/models', '/v1/models;x', '/admin/v1/keys/..;/metrics', '/v1/%zz'])('%s opens nothing', async (path) => {
    for (const key of [null, world.key]) {
      const response = await fetch(world.url + path, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
      await expectFault(response, path, [400, 401, 404]);
    }
  });

  test('an encoded path is the route it stands for, with its fence', async () => {
    await expectFault(await world.fetch('/v1/model%73', { key: null }), '/v1/models', [401]);
    await expectFault(await world.fetch('/%61dmin/v1/keys', { key: world.key }), '/v1', [403]);
  });

  test('an empty JSON body on a path that nobody serves is no fault of ours', async () => {
    expect((await world.fetch('/v1/files/file_1/', { method: 'DELETE', headers: { 'content-type': 'application/json' } })).status).toBeLessThan(500);
  });

  test('a wrong method says which are right', async () => {
    const response = await world.fetch('/v1/chat/completions');
    expect(await expectFault(response, '/v1', [405])).toBe('method_not_allowed');
    expect(response.headers.get('allow')).toBe('POST');
  });

  test('the same routes answer without /v1, and HEAD is no way around', async () => {
    expect((await world.fetch('/models', { key: world.key })).status).toBe(200);
    expect((await world.fetch('/v1/models', { method: 'HEAD', key: null })).status).toBe(401);
  });

  test.each([
    ['a broken request line', 'GARBAGE\r\n\r\n'],
    ['an oversized header', `GET /v1/models HTTP/1.1\r\nhost: x\r\nx-large: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['two lengths', 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{'],
  ])('%s gets the envelope too', async (_name, bytes) => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(world.url).port), '127.0.0.1', () => socket.write(bytes));
      let text = '';
      socket.on('data', (chunk) => { text += String(chunk); });
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/);
    openAiErrorBody.parse(JSON.parse(answer.split('\r\n\r\n')[1] ?? ''));
  });
});

describe('tenants', () => {
  async function tenant(name: string): Promise<{ organisationId: string; adminKey: string; key: string }> {
    const { id: organisationId } = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name }) })).json() as { id: string };
    const projects = await (await world.fetch('/admin/v1/projects')).json() as { data: { id: string; organisation_id: string }[] };
    const project = projects.data.find((each) => each.organisation_id === organisationId);
    const make = async (kind: string) => ((await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: kind, kind, project_id: project?.id }) })).json()) as { key: string }).key;
    return { organisationId, adminKey: await make('admin'), key: await make('inference') };
  }

  test('see their own models, keys and projects, and no others', async () => {
    const [one, two] = [await tenant('One'), await tenant('Two')];
    await deploy(world.append, 'ep_private', 'private-model', one.organisationId);
    const namesOf = async (key: string) => ((await (await world.fetch('/v1/models', { key })).json()) as { data: { id: string }[] }).data.map((model) => model.id);
    expect(await namesOf(one.key)).toEqual(['private-model', 'public-model']);
    expect(await namesOf(two.key)).toEqual(['public-model']);
    const unknown = await (await world.chat({ model: 'unknown-modl' }, { headers: { authorization: `Bearer ${two.key}` } })).text();
    const forbidden = await (await world.chat({ model: 'private-model' }, { headers: { authorization: `Bearer ${two.key}` } })).text();
    expect(forbidden.replace('private-model', 'unknown-modl')).toBe(unknown);

    const keys = await (await world.fetch('/admin/v1/keys', { key: two.adminKey })).json() as { data: { id: string; organisation_id: string }[] };
    expect(new Set(keys.data.map((key) => key.organisation_id))).toEqual(new Set([two.organisationId]));
    expect(JSON.stringify(keys)).not.toMatch(/hmac|sk-ps-[A-Za-z0-9_-]{43}/);
    const others = await (await world.fetch('/admin/v1/keys', { key: one.adminKey })).json() as { data: { id: string }[] };
    expect((await world.fetch(`/admin/v1/keys/${others.data[0]?.id}`, { method: 'DELETE', key: two.adminKey })).status).toBe(404);
    expect((await world.fetch('/admin/v1/endpoints/ep_private', { method: 'DELETE', key: two.adminKey })).status).toBe(404);
    expect((await world.fetch('/admin/v1/organisations', { method: 'POST', key: two.adminKey, body: JSON.stringify({ name: 'Three' }) })).status).toBe(403);
    for (const path of ['/admin/v1/events', '/admin/v1/fleet', '/admin/v1/dead-letters']) expect((await world.fetch(path, { key: two.adminKey })).status).toBe(403);
  });

  test.each(['https://127.0.0.1/model.gguf', 'file:///models', 'attach+http://127.0.0.1:1'])('cannot deploy from %s, which only the operator may look at', async (artifact) => {
    const { adminKey } = await tenant('Three');
    const answer = await world.fetch('/v1/models/deploy', { method: 'POST', key: adminKey, body: JSON.stringify({ model_name: 'mine', model_artifact: artifact, framework: 'vllm' }) });
    expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 'insufficient_permissions', param: 'model_artifact' } }]);
  });

  test('a revoked key stops, an expired one and one for other models too', async () => {
    const make = async (body: object) => (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', ...body }) })).json() as Promise<{ id: string; key: string }>;
    const { id, key } = await make({});
    expect((await world.chat({}, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200);
    expect((await world.fetch(`/admin/v1/keys/${id}`, { method: 'DELETE', headers: { 'content-type': 'application/json' } })).status).toBe(200);
    expect((await world.chat({}, { headers: { authorization: `Bearer ${key}` } })).status).toBe(401);
    const other = await make({ models: ['another-model'] });
    expect((await world.chat({}, { headers: { authorization: `Bearer ${other.key}` } })).status).toBe(404);
    expect((await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', expires_at: '2020-01-01T00:00:00.000Z' }) })).status).toBe(400);
    expect((await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', organisation_id: 'org_x' }) })).status).toBe(400);
  });
});

describe('files', () => {
  const file: FileObject = { id: 'file_1', object: 'file', bytes: 3, created_at: 1, expires_at: null, filename: 'данные.jsonl', purpose: 'batch', status: 'processed', status_details: null };

  test('an upload goes to the object store under the organisation of the key, and comes back as it was', async () => {
    world.commands.serve(registerFile, (request) => ({ kind: 'ok', value: { ...file, id: request.fileId, bytes: request.bytes, filename: request.filename } }));
    const form = new FormData();
    form.set('file', new Blob(['{"custom_id":"ü"}\n']), '../../данные.jsonl');
    form.set('purpose', 'batch');
    const response = await world.fetch('/v1/files', { method: 'POST', key: world.key, body: form });
    expect(response.status).toBe(200);
    const registered = world.commands.sent.findLast(({ subject }) => subject === registerFile.subject)?.request as { objectKey: string; filename: string; digest: string; organisationId: string };
    expect(registered).toMatchObject({ filename: 'данные.jsonl', organisationId: 'org_root', digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), objectKey: expect.stringMatching(/^files\/org_root\/file_/) });
    world.commands.serve(getFile, ({ organisationId }) => (organisationId === 'org_root' ? { kind: 'ok', value: { file, objectKey: registered.objectKey } } : { kind: 'refused', refusal: { code: 'file_not_found', message: 'No such File object' } }));
    const content = await world.fetch('/v1/files/file_1/content', { key: world.key });
    expect([content.headers.get('content-disposition'), await content.text()]).toEqual([`attachment; filename*=UTF-8''${encodeURIComponent('данные.jsonl')}`, '{"custom_id":"ü"}\n']);
  });

  test.each<[string, (form: FormData) => void, number, string]>([
    ['no file', (form) => form.set('purpose', 'batch'), 400, 'missing_required_parameter'],
    ['no purpose', (form) => form.set('file', new Blob(['x']), 'a.jsonl'), 400, 'missing_required_parameter'],
    ['another purpose', (form) => { form.set('purpose', 'assistants'); form.set('file', new Blob(['x']), 'a.jsonl'); }, 400, 'invalid_value'],
    ['another kind of file', (form) => { form.set('purpose', 'batch'); form.set('file', new Blob(['x']), 'a.txt'); }, 400, 'invalid_file'],
    ['a life that begins elsewhere', (form) => { form.set('purpose', 'batch'); form.set('expires_after[anchor]', 'last_used_at'); form.set('file', new Blob(['x']), 'a.jsonl'); }, 400, 'invalid_value'],
    ['a life of no length', (form) => { form.set('purpose', 'batch'); form.set('expires_after[anchor]', 'created_at'); form.set('file', new Blob(['x']), 'a.jsonl'); }, 400, 'missing_required_parameter'],
    ['a file that is too large', (form) => { form.set('purpose', 'batch'); form.set('file', new Blob(['x'.repeat(150_000)]), 'a.jsonl'); }, 413, 'body_too_large'],
  ])('an upload with %s leaves nothing behind', async (_name, fill, status, code) => {
    const before = (await world.objects.list('')).objects.length;
    const form = new FormData();
    fill(form);
    const response = await world.fetch('/v1/files', { method: 'POST', key: world.key, body: form });
    expect(await expectFault(response, '/v1/files', [status])).toBe(code);
    expect((await world.objects.list('')).objects).toHaveLength(before);
  });

  test.each([['without an end', 'x', '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'], ['of nothing but a boundary', 'b'.repeat(252), `--${'b'.repeat(252)}\r\n`]])('a form %s is the client\'s fault', async (_name, boundary, body) => {
    const upload = await (await world.fetch('/v1/uploads', { method: 'POST', key: world.key, body: JSON.stringify({ filename: 'a.jsonl', purpose: 'batch', bytes: 4, mime_type: 'x/y' }) })).json() as { id: string };
    for (const path of ['/v1/files', `/v1/uploads/${upload.id}/parts`]) {
      const answer = await world.fetch(path, { method: 'POST', key: world.key, headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body });
      expect([answer.status, await answer.json()]).toMatchObject([400, { error: { type: 'invalid_request_error' } }]);
    }
    expect((await world.objects.list('upload-parts/')).objects).toEqual([]);
  });

  test('lists and deletes, with an empty JSON body as the Python SDK sends it', async () => {
    world.commands.serve(listFiles, () => ({ kind: 'ok', value: { files: [file], hasMore: false } }));
    world.commands.serve(deleteFile, ({ fileId }) => ({ kind: 'ok', value: { fileId } }));
    expect(await (await world.fetch('/v1/files', { key: world.key })).json()).toMatchObject({ object: 'list', first_id: 'file_1', has_more: false });
    expect(await (await world.fetch('/v1/files/file_1', { method: 'DELETE', key: world.key, headers: { 'content-type': 'application/json' } })).json()).toEqual({ id: 'file_1', object: 'file', deleted: true });
  });
});

describe('the rest of the control plane', () => {
  test('usage asks for the organisation of the key, and an inference key for its project', async () => {
    let asked: unknown;
    world.commands.serve(queryUsage, (request) => {
      asked = request;
      return { kind: 'ok', value: { buckets: [], nextPage: null } };
    });
    const response = await world.fetch('/v1/organization/usage/completions?start_time=0&group_by[]=model&group_by[]=project_id&organisation_id=org_other', { key: world.key });
    expect(await response.json()).toEqual({ object: 'page', data: [], has_more: false, next_page: null });
    expect(asked).toMatchObject({ organisationId: 'org_root', projectIds: ['proj_root'], groupBy: ['model', 'project_id'], limit: 7 });
    expect((await world.fetch('/v1/organization/usage/completions?start_time=0&group_by=weather', { key: world.key })).status).toBe(400);
  });

  test('a service that is away is a 503 with a hint', async () => {
    const response = await world.fetch('/v1/batches', { key: world.key });
    expect(await expectFault(response, '/v1/batches', [503])).toBe('service_unavailable');
    expect(response.headers.get('retry-after')).toBe('1');
  });

  test('events are listed by stream and aggregate, and followed', async () => {
    const list = await (await world.fetch('/admin/v1/events?context=access&limit=2')).json() as { data: { type: string; stream: string }[]; has_more: boolean };
    expect(list.data).toHaveLength(2);
    expect(list.data.every((event) => event.stream === 'EV_ACCESS')).toBe(true);
    const one = await (await world.fetch('/admin/v1/events?context=registry&aggregate=endpoint&id=ep_1')).json() as { data: unknown[] };
    expect(one.data).toMatchObject([{ type: 'endpoint.deployed.v1', subject: 'ev.registry.endpoint.ep_1', sequence: 1 }]);
    const abort = new AbortController();
    const followed = await world.fetch('/admin/v1/events?context=registry&follow=true&from_sequence=1', { signal: abort.signal });
    const first = new TextDecoder().decode((await followed.body?.getReader().read())?.value);
    expect(JSON.parse(first.slice('data: '.length).split('\n')[0] ?? '')).toMatchObject({ type: 'endpoint.deployed.v1' });
    abort.abort();
  });

  test('progress shows where the replicas of an endpoint are', async () => {
    const abort = new AbortController();
    const followed = await world.fetch('/admin/v1/progress?endpoint_id=ep_1', { signal: abort.signal });
    const first = new TextDecoder().decode((await followed.body?.getReader().read())?.value);
    expect(JSON.parse(first.slice('data: '.length).split('\n')[0] ?? '')).toMatchObject({ kind: 'phase', replica_id: 'rep_0', phase: 'ready' });
    abort.abort();
    expect((await world.fetch('/admin/v1/progress?endpoint_id=nope')).status).toBe(404);
  });

  test('dead letters are listed and handed out again', async () => {
    world.deadLetters.push({ id: 7, stream: 'EV_USAGE', sequence: 3, subject: 'ev.usage.o.e', consumer: 'metering-usage', reason: 'bad', deliveries: 5, deadAt: '2026-11-29T12:00:00.000Z' });
    expect(await (await world.fetch('/admin/v1/dead-letters')).json()).toMatchObject({ data: [{ id: '7', consumer: 'metering-usage', reason: 'bad' }] });
    expect(await (await world.fetch('/admin/v1/dead-letters/redrive', { method: 'POST', body: '{}' })).json()).toEqual({ redriven: 1 });
    expect((await world.fetch('/admin/v1/dead-letters/redrive', { method: 'POST', body: '{"ids":["x"]}' })).status).toBe(400);
  });

  test('health and metrics are open, and metrics name no tenant', async () => {
    expect((await fetch(`${world.url}/readyz`)).status).toBe(200);
    await (await world.chat({ stream: true })).text();
    const metrics = await (await fetch(`${world.url}/metrics`)).text();
    expect(metrics).toContain('gen_ai_server_time_to_first_token_seconds_bucket');
    expect(metrics).toContain('penstock_usage_spool_bytes');
    expect(metrics).not.toMatch(/org_[0-9a-f]{32}/);
  });

  test('metrics call the model of an organisation by its id, and that of everybody by its name', async () => {
    const { id: organisationId } = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Secretive' }) })).json() as { id: string };
    const { key } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', project_id: `proj_${organisationId.slice(4)}` }) })).json() as { key: string };
    await deploy(world.append, 'ep_secret', 'secret-project', organisationId);
    // Served or not, it counts.
    await (await world.chat({ model: 'secret-project' }, { headers: { authorization: `Bearer ${key}` } })).text();
    await (await world.chat({})).text();
    const metrics = await (await fetch(`${world.url}/metrics`)).text();
    expect(metrics).toContain('model="ep_secret"');
    expect(metrics).toContain('model="public-model"');
    expect(metrics).not.toContain('secret-project');
  });
});

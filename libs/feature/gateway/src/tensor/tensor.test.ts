import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { admitRequest, releaseLeases, renewLeases, type Lease } from '@penstock/contract-commands';
import { asyncResponseBody, tensorErrorBody, tensorModel } from '@penstock/contract-http';
import { eventually } from '@penstock/testing-kit';
import { startWorld, type World } from '../gateway-world-suite.js';

interface Received {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly response: ServerResponse;
}

/** An engine of tensors on loopback that behaves as a test tells it to. */
class FakeTensorEngine {
  readonly requests: Received[] = [];
  answer: (received: Received) => void = ({ response }) => reply(response, 200, completed);
  private readonly server: Server = createServer((request, response) => void this.receive(request, response));

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received = { url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks), response };
    this.requests.push(received);
    this.answer(received);
  }
}

const completed = '{"id":"a","model_name":"inner","model_version":"9","outputs":[{"name":"y","datatype":"INT64","shape":[1],"data":[9007199254740993]}]}';
const inference = { inputs: [{ name: 'x', shape: [1, 2], datatype: 'FP32', data: [0.5, 1] }] };

function reply(response: ServerResponse, status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(body);
}

let world: World;
let engines: FakeTensorEngine[];
let outcomes: string[];

async function deployTensors(endpointId: string, name: string, engine: 'onnx' | 'triton', tensors: boolean, version = '7'): Promise<void> {
  const modelVersionId = `mv_${endpointId}`;
  const source = { kind: 'directory' as const, path: '/models/a.onnx' };
  await world.append('registry', 'model-version', modelVersionId, { type: 'model-version.submitted.v1', data: { modelVersionId, modelName: name, version, engine, source, fallbackSources: [], expectedDigest: null, organisationId: null } });
  await world.append('registry', 'model-version', modelVersionId, {
    type: 'model-version.registered.v1',
    data: {
      modelVersionId, artifacts: [], source, format: 'onnx', architecture: null, parameters: null, precision: null, layers: null, contextTokensMax: 4_096,
      memory: { weightBytes: 1, kvBytesPerToken: 0, overheadBytes: 1, basis: 'header' }, capabilities: ['infer'], license: null, randomWeights: false,
    },
  });
  if (tensors) {
    await world.append('registry', 'model-version', modelVersionId, {
      type: 'model-version.tensors-read.v1', data: { modelVersionId, inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }], outputs: [{ name: 'y', datatype: 'INT64', shape: [-1] }] },
    });
  }
  await world.append('registry', 'endpoint', endpointId, {
    type: 'endpoint.deployed.v1',
    data: {
      endpointId, name, modelVersionId, engine, organisationId: null, hardware: { acceleratorType: 'cpu', acceleratorCount: 1 }, scaling: { minReplicas: 1, maxReplicas: 2, scaleToZeroAfterIdleSeconds: null },
      serving: { slotsPerReplica: 4, contextTokens: 2_048, queueMax: 4, queueWaitMsMax: 1_000 }, engineOptions: {},
    },
  });
}

async function placeReplica(endpointId: string, url: string): Promise<void> {
  const replicaId = `rep_${endpointId}`;
  await world.append('fleet', 'replica', replicaId, { type: 'replica.placed.v1', data: { replicaId, endpointId, modelVersionId: `mv_${endpointId}`, nodeId: 'node_1', acceleratorIds: ['acc_1'], reservedBytes: 1, reason: { summary: 'test', candidates: [] } } });
  await world.append('fleet', 'replica', replicaId, { type: 'replica.ready.v1', data: { replicaId, url, engine: 'triton', servedModel: 'inner', slots: 4, contextTokens: 1, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } } });
}

beforeEach(async () => {
  world = await startWorld({ engines: 0 });
  engines = await Promise.all([new FakeTensorEngine().start(), new FakeTensorEngine().start()]);
  outcomes = [];
  await deployTensors('ep_t', 'team/tensor', 'onnx', true);
  let leases = 0;
  world.commands.serve(admitRequest, ({ excludedReplicaIds, endpointId }) => {
    const index = excludedReplicaIds.length;
    const engine = engines[index];
    if (engine === undefined) return { kind: 'refused', refusal: { code: 'no_capacity', message: 'No other replica.', retryAfterMs: 1_000 } };
    leases += 1;
    const lease: Lease = { leaseId: `lease_${leases}`, endpointId, replicaId: `rep_${index}`, modelVersionId: `mv_${endpointId}`, url: engine.url, engine: 'triton', servedModel: 'inner', expiresAtMs: Date.now() + 15_000, queuedMs: 1, coldStart: false };
    return { kind: 'ok', value: lease };
  });
  world.commands.serve(releaseLeases, ({ releases }) => {
    outcomes.push(...releases.map(({ outcome }) => outcome));
    return { kind: 'ok', value: { released: releases.length } };
  });
  world.commands.serve(renewLeases, ({ leases: renewed }) => ({ kind: 'ok', value: { renewed: renewed.length } }));
});
afterEach(async () => {
  await world.close();
  await Promise.all(engines.map((engine) => engine.close()));
});

const MODEL = '/v2/models/team%2Ftensor';
const infer = (body: object | string | Buffer, headers: Record<string, string> = {}, path = `${MODEL}/infer`) =>
  world.fetch(path, { method: 'POST', key: world.key, body: typeof body === 'string' || Buffer.isBuffer(body) ? (body as NonNullable<RequestInit['body']>) : JSON.stringify(body), headers });
const fault = async (response: Response) => ({ status: response.status, ...tensorErrorBody.parse(await response.json()) });
const inferOf = (engine = engines[0]) => engine?.requests.filter(({ url }) => url.endsWith('/infer')) ?? [];

describe('what the server says of itself', () => {
  test('its extensions and health, to whoever has a key', async () => {
    expect(await (await world.fetch('/v2')).json()).toEqual({ name: 'penstock', version: '0.1.0', extensions: ['binary_tensor_data', 'parameters'] });
    for (const path of ['/v2/health/live', '/v2/health/ready']) expect([(await world.fetch(path)).status, await (await world.fetch(path)).text()]).toEqual([200, '']);
  });

  test('a model\'s tensors come from the registry while nothing runs, and it is ready once a replica is', async () => {
    const model = tensorModel.parse(await (await world.fetch(MODEL, { key: world.key })).json());
    expect(model).toEqual({ name: 'team/tensor', versions: ['7'], platform: 'onnxruntime', inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }], outputs: [{ name: 'y', datatype: 'INT64', shape: [-1] }] });
    expect(await fault(await world.fetch(`${MODEL}/ready`, { key: world.key }))).toMatchObject({ status: 503, code: 'model_loading' });
    await placeReplica('ep_t', engines[0]?.url ?? '');
    await eventually(() => world.fetch(`${MODEL}/versions/7/ready`, { key: world.key }), ({ status }) => status === 200);
  });

  test('under a traffic split a version that is asked for gets its endpoint, and one that nobody has is told from those', async () => {
    await deployTensors('ep_old', 'tensor-old', 'onnx', true, '1');
    await deployTensors('ep_new', 'tensor-new', 'onnx', true, '2');
    await world.append('registry', 'traffic-split', 'ts_1', { type: 'traffic-split.set.v1', data: { splitId: 'ts_1', name: 'shared', organisationId: null, targets: [{ endpointId: 'ep_old', weight: 999 }, { endpointId: 'ep_new', weight: 1 }], sticky: 'request', reason: 'canary' } });
    const described = await eventually(() => world.fetch('/v2/models/shared', { key: world.key }), ({ status }) => status === 200);
    expect(((await described.json()) as { versions: string[] }).versions).toEqual(['1', '2']);
    const endpoints = new Set<string>();
    world.commands.serve(admitRequest, ({ endpointId }) => {
      endpoints.add(endpointId);
      return { kind: 'refused', refusal: { code: 'no_capacity', message: 'Nothing is there.', retryAfterMs: 1_000 } };
    });
    for (const [version, endpointId] of [['2', 'ep_new'], ['1', 'ep_old']] as const) {
      endpoints.clear();
      for (let turn = 0; turn < 5; turn += 1) expect((await infer(inference, {}, `/v2/models/shared/versions/${version}/infer`)).status).toBe(503);
      expect([...endpoints]).toEqual([endpointId]);
    }
    expect(await fault(await infer(inference, {}, '/v2/models/shared/versions/3/infer'))).toMatchObject({ status: 404, code: 'model_not_found', error: expect.stringContaining("no version '3'; its versions are '1', '2'.") });
  });

  test('of an attached engine, a ready replica is asked once', async () => {
    await deployTensors('ep_a', 'attached', 'triton', false);
    expect(await fault(await eventually(() => world.fetch('/v2/models/attached'), ({ status }) => status !== 404))).toMatchObject({ status: 503, code: 'model_loading' });
    const [engine] = engines;
    if (engine === undefined) throw new Error('no engine');
    engine.answer = ({ response }) => reply(response, 200, JSON.stringify({ name: 'inner', versions: ['1'], platform: 'python', inputs: [{ name: 'q', datatype: 'INT8', shape: [2] }], outputs: [] }));
    await placeReplica('ep_a', engine.url);
    const response = await eventually(() => world.fetch('/v2/models/attached'), ({ status }) => status === 200);
    expect(await response.json()).toEqual({ name: 'attached', versions: ['7'], platform: 'triton', inputs: [{ name: 'q', datatype: 'INT8', shape: [2] }], outputs: [] });
    await world.fetch('/v2/models/attached');
    expect(engine.requests).toHaveLength(1);
  });

  test('models of others, of text, and of another version', async () => {
    expect(await fault(await world.fetch('/v2/models/nope'))).toMatchObject({ status: 404, code: 'model_not_found' });
    expect(await fault(await world.fetch(`${MODEL}/versions/8`))).toMatchObject({ status: 404, error: expect.stringContaining("its version is '7'") as unknown as string });
    expect(await fault(await infer(inference, {}, '/v2/models/public-model/infer'))).toMatchObject({ status: 400, code: 'unsupported_value', error: expect.stringContaining('/v1/chat/completions') as unknown as string });
    const chat = await world.chat({ model: 'team/tensor' });
    expect([chat.status, await chat.text()]).toEqual([400, expect.stringContaining('/v2/models/team%2Ftensor/infer')]);
  });
});

describe('an inference', () => {
  test('reaches the engine byte for byte, comes back under the public name with every digit, and counts as one', async () => {
    const body = '{ "id":"a", "inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[0.50, 1e0]}], "own":12345678901234567890 }';
    const response = await infer(body, { 'content-type': 'text/plain', 'x-custom': 'secret' });
    expect(await response.text()).toBe('{"id":"a","model_name":"team/tensor","model_version":"7","outputs":[{"name":"y","datatype":"INT64","shape":[1],"data":[9007199254740993]}]}');
    const [request] = inferOf();
    expect([request?.url, request?.body.toString()]).toEqual(['/v2/models/inner/infer', body]);
    expect(request?.headers).not.toHaveProperty('x-custom');
    expect(request?.headers).not.toHaveProperty('authorization');
    expect(await world.usage(1)).toMatchObject([{ requestId: response.headers.get('x-request-id'), operation: 'infer', stream: false, status: 'completed', httpStatus: 200, promptTokens: 0, completionTokens: 0, endpointId: 'ep_t', modelVersionId: 'mv_ep_t', tokensEstimated: false }]);
    await eventually(() => outcomes, (found) => found.length === 1);
    expect(outcomes).toEqual(['ok']);
  });

  test('takes and gives binary tensors', async () => {
    const head = JSON.stringify({ inputs: [{ name: 'x', shape: [1, 2], datatype: 'FP32', parameters: { binary_data_size: 8 } }], parameters: { binary_data_output: true } });
    const tensor = Buffer.from(Float32Array.of(0.5, NaN).buffer);
    const answer = Buffer.from('{"model_name":"inner","model_version":"1","outputs":[{"name":"y","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}}]}');
    const values = Buffer.from(BigInt64Array.of(2n ** 62n).buffer);
    for (const engine of engines) engine.answer = ({ response }) => reply(response, 200, Buffer.concat([answer, values]), { 'Inference-Header-Content-Length': String(answer.length) });
    const response = await infer(Buffer.concat([Buffer.from(head), tensor]), { 'content-type': 'application/octet-stream', 'Inference-Header-Content-Length': String(head.length) }, `${MODEL}/versions/7/infer`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const headLength = Number(response.headers.get('inference-header-content-length'));
    expect([response.status, response.headers.get('content-type'), JSON.parse(bytes.subarray(0, headLength).toString())]).toEqual([200, 'application/octet-stream', expect.objectContaining({ model_name: 'team/tensor', model_version: '7' })]);
    expect(bytes.subarray(headLength)).toEqual(values);
    expect(inferOf()[0]?.body).toEqual(Buffer.concat([Buffer.from(head), tensor]));
    expect(inferOf()[0]?.headers['inference-header-content-length']).toBe(String(head.length));
  });

  test('what is no JSON number arrives as a string, and stays text where it was text', async () => {
    for (const engine of engines) engine.answer = ({ response }) => reply(response, 200, '{"model_name":"inner","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[3],"data":[NaN,-Infinity,1.5]},{"name":"t","datatype":"BYTES","shape":[1],"data":["a NaN \\" Infinity"]}]}');
    expect(await (await infer(inference)).json()).toMatchObject({ outputs: [{ data: ['NaN', '-Infinity', 1.5] }, { data: ['a NaN " Infinity'] }] });
  });

  test.each<[string, object | string, string, string]>([
    ['bad JSON', '{"inputs":', 'invalid_json', 'JSON'],
    ['no inputs', {}, 'missing_required_parameter', 'inputs'],
    ['an id that is no text', { ...inference, id: 7 }, 'invalid_type', 'id'],
    ['an unknown datatype', { inputs: [{ ...inference.inputs[0], datatype: 'FP31' }] }, 'invalid_value', 'datatype'],
    ['another datatype', { inputs: [{ ...inference.inputs[0], datatype: 'INT64', data: [1, 2] }] }, 'invalid_value', 'is FP32'],
    ['another shape', { inputs: [{ ...inference.inputs[0], shape: [2], data: [1, 2] }] }, 'invalid_value', '[-1,2]'],
    ['fewer values than the shape', { inputs: [{ ...inference.inputs[0], shape: [2, 2] }] }, 'invalid_value', '4 elements'],
    ['text for numbers', { inputs: [{ ...inference.inputs[0], data: ['a', 'b'] }] }, 'invalid_type', 'no FP32'],
    ['an unknown input', { inputs: [{ ...inference.inputs[0], name: 'z' }] }, 'invalid_value', "'x'"],
    ['an unknown output', { ...inference, outputs: [{ name: 'z' }] }, 'invalid_value', "'y'"],
    ['the memory of others', { inputs: [{ ...inference.inputs[0], parameters: { shared_memory_region: 'a', shared_memory_byte_size: 8 } }] }, 'unsupported_value', 'shared_memory_region'],
    ['a priority', { ...inference, parameters: { priority: 1 } }, 'unsupported_value', 'priority'],
    ['a sequence', { ...inference, parameters: { sequence_id: 1 } }, 'unsupported_value', 'sequence_id'],
    ['classes', { ...inference, outputs: [{ name: 'y', parameters: { classification: 1 } }] }, 'unsupported_value', 'classify'],
  ])('with %s is the caller\'s fault, and no engine sees it', async (_name, body, code, words) => {
    const found = await fault(await infer(body));
    expect(found).toMatchObject({ status: 400, code });
    expect(found.error).toContain(words);
    expect(inferOf()).toHaveLength(0);
  });

  test.each([['-1'], ['x'], ['100000'], ['0']])('a head length of %s is the caller\'s fault', async (length) => {
    expect(await fault(await infer(JSON.stringify(inference), { 'Inference-Header-Content-Length': length }))).toMatchObject({ status: 400, code: 'invalid_value' });
  });

  test('too large a body is said to be so', async () => {
    expect(await fault(await infer(Buffer.alloc(300_000), { 'content-type': 'application/octet-stream' }))).toMatchObject({ status: 413, code: 'body_too_large' });
  });

  test('the other routes still take JSON only', async () => {
    const response = await world.fetch('/v1/chat/completions', { method: 'POST', key: world.key, body: Buffer.from('{}') as NonNullable<RequestInit['body']>, headers: { 'content-type': 'application/octet-stream' } });
    expect(response.status).toBe(415);
  });
});

describe('an engine that fails', () => {
  test.each<[string, number, string, object, string, number]>([
    ['says that the request is wrong, with a status of its own fault', 500, '{"error":"[request id: a] failed to parse the request JSON buffer: Invalid value. at 12"}', { status: 400, code: 'request_rejected_by_engine' }, 'ok', 1],
    ['refuses the shape', 400, '{"error":"[request id: <id_unknown>] unexpected shape for input \'x\' for model \'inner\'. Expected [-1,8], got [1,7]"}', { status: 400, error: "unexpected shape for input 'x' for model 'team/tensor'. Expected [-1,8], got [1,7]" }, 'ok', 1],
    ['has a model that raised', 500, '{"error":"Failed to process the request(s) for model instance \'m\', message: ValueError: kaboom\\n\\nAt:\\n  /srv/secret/model.py(3): execute\\n"}', { status: 500, code: 'inference_failed', error: expect.not.stringContaining('secret') as unknown }, 'ok', 1],
    ['is full', 503, '{"error":"[request id: q] Exceeds maximum queue size"}', { status: 503, code: 'no_capacity' }, 'engine-failed', 2],
    ['has a dead model', 500, '{"error":"Stub process \'m_0_0\' is not healthy."}', { status: 502, code: 'replica_failed' }, 'engine-failed', 2],
    ['lost its model', 404, '{"error":"Request for unknown model: \'inner\' is not found"}', { status: 502, code: 'replica_failed' }, 'engine-failed', 2],
    ['answers nonsense', 200, '<html>', { status: 502, code: 'engine_response_invalid' }, 'engine-failed', 2],
    ['answers bytes that are not UTF-8', 200, 'latin1', { status: 502, code: 'engine_response_invalid', error: expect.stringContaining('binary') as unknown }, 'engine-failed', 1],
  ])('%s', async (name, status, text, expected, outcome, attempts) => {
    const body = name.includes('UTF-8') ? Buffer.from('{"model_name":"inner","model_version":"1","outputs":[{"name":"y","datatype":"BYTES","shape":[1],"data":["\xff"]}]}', 'latin1') : text;
    for (const engine of engines) engine.answer = ({ response }) => reply(response, status, body);
    expect(await fault(await infer(inference))).toMatchObject(expected);
    await eventually(() => outcomes, (found) => found.length === attempts);
    expect(new Set(outcomes)).toEqual(new Set([outcome]));
    const [record] = await world.usage(1);
    expect(record).toMatchObject({ status: 'failed', operation: 'infer' });
    const metrics = await (await fetch(new URL('/metrics', world.url))).text();
    expect(metrics.split('\n').filter((line) => line.startsWith('penstock_inferences_total'))).toEqual(['penstock_inferences_total{model="team/tensor",status="failed",service="gateway"} 1']);
  });

  test('is passed over for another one where it did not do the work', async () => {
    if (engines[0] !== undefined) engines[0].answer = ({ response }) => reply(response, 503, '{"error":"Exceeds maximum queue size"}');
    expect((await infer(inference)).status).toBe(200);
    expect([inferOf(engines[0]).length, inferOf(engines[1]).length]).toEqual([1, 1]);
  });

  test('in the middle of the work is not asked again elsewhere', async () => {
    if (engines[0] !== undefined) engines[0].answer = ({ response }) => response.destroy();
    expect(await fault(await infer(inference))).toMatchObject({ status: 502, code: 'replica_failed' });
    expect([inferOf(engines[0]).length, inferOf(engines[1]).length]).toEqual([1, 0]);
  });
});

test('a client that leaves keeps the slot until the engine is done, and is recorded as gone', async () => {
  let finish: (() => void) | undefined;
  if (engines[0] !== undefined) engines[0].answer = ({ response }) => {
    finish = () => reply(response, 200, completed);
  };
  const abort = new AbortController();
  const answer = world.fetch(`${MODEL}/infer`, { method: 'POST', key: world.key, body: JSON.stringify(inference), signal: abort.signal }).catch(() => undefined);
  await eventually(() => finish, (call) => call !== undefined);
  abort.abort();
  await answer;
  // The gateway hears of the closed connection before it answers what is sent after it.
  for (let round = 0; round < 3; round += 1) await world.fetch('/v2', { headers: { connection: 'close' } });
  expect(outcomes).toEqual([]);
  finish?.();
  expect(await world.usage(1)).toMatchObject([{ status: 'aborted', httpStatus: 499, errorCode: 'client_disconnected' }]);
  await eventually(() => outcomes, (found) => found.length === 1);
  expect(outcomes).toEqual(['ok']);
});

describe('an inference whose answer is stored', () => {
  test('under an Idempotency-Key runs and is counted once; other bytes, or another head, are a mistake', async () => {
    const first = await infer(inference, { 'idempotency-key': 'once' });
    const body = await first.text();
    const second = await infer(inference, { 'idempotency-key': 'once' });
    expect([first.status, second.status, second.headers.get('idempotent-replayed'), await second.text()]).toEqual([200, 200, 'true', body]);
    expect(inferOf()).toHaveLength(1);
    expect(await world.usage(1)).toMatchObject([{ operation: 'infer', status: 'completed' }]);
    const text = JSON.stringify(inference);
    expect(await fault(await infer(`${text} `, { 'idempotency-key': 'once' }))).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
    expect(await fault(await infer(text, { 'idempotency-key': 'once', 'Inference-Header-Content-Length': String(text.length) }))).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
  });

  test('asynchronously comes back as base64 with the length of its head where it is binary', async () => {
    const answer = Buffer.from('{"model_name":"inner","model_version":"1","outputs":[{"name":"y","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}}]}');
    const values = Buffer.from(BigInt64Array.of(2n ** 62n).buffer);
    for (const engine of engines) engine.answer = ({ response }) => reply(response, 200, Buffer.concat([answer, values]), { 'Inference-Header-Content-Length': String(answer.length) });
    const accepted = await infer({ ...inference, parameters: { binary_data_output: true } }, { prefer: 'respond-async' });
    expect(accepted.status).toBe(202);
    const { url } = asyncResponseBody.parse(await accepted.json());
    const done = await eventually(async () => asyncResponseBody.parse(await (await world.fetch(url, { key: world.key })).json()), ({ status }) => status !== 'running');
    expect(done).toMatchObject({ status: 'completed', response: { status_code: 200, content_type: 'application/octet-stream', is_base64: true } });
    const bytes = Buffer.from(String(done.response?.body), 'base64');
    const headLength = done.response?.inference_header_content_length ?? 0;
    expect([JSON.parse(bytes.subarray(0, headLength).toString()), bytes.subarray(headLength)]).toEqual([expect.objectContaining({ model_name: 'team/tensor' }), values]);
  });

  test('that is at fault says so in the protocol\'s own words', async () => {
    const { url } = asyncResponseBody.parse(await (await infer({ inputs: [] }, { prefer: 'respond-async' })).json());
    const done = await eventually(async () => asyncResponseBody.parse(await (await world.fetch(url, { key: world.key })).json()), ({ status }) => status !== 'running');
    expect(done).toMatchObject({ status: 'failed', response: { status_code: 400, body: { error: expect.any(String) } } });
  });
});

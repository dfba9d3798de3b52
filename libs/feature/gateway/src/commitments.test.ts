import { adviseDeployment, deployEndpoint, listReservations, makeReservation, planDeployment, planNodes, registerModelVersion, releaseReservation, type ReservationView } from '@penstock/contract-commands';
import { reservationMadeV1, reservationRefusedV1 } from '@penstock/contract-events';
import { planBody, reservationList } from '@penstock/contract-http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ADMIN_KEY, startWorld, type World } from './gateway-world-suite.js';

const made = reservationMadeV1.schema.parse(reservationMadeV1.example);
const refusal = reservationRefusedV1.schema.parse(reservationRefusedV1.example);
const view = (part: Partial<ReservationView> = {}): ReservationView => ({ ...made, status: 'in-force', ready: 2, floor: 3, wouldFit: [], ...part });
const cost = { dollarsPerHour: 7, lowerBoundDollarsPerHour: 6, gpusInUse: 2, gpus: 8 };
const plan = { fits: true, placed: [], moves: [], refused: [], brokenReservations: [], before: cost, after: cost };
const advice = { kind: 'keep' as const, current: null, best: null, savedDollarsPerHour: 0, savedPercent: 0, others: [], vetoes: [], says: 'Nothing known is cheaper.' };

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(() => world.close());

const admin = (path: string, method = 'GET', body?: unknown): Promise<Response> =>
  world.fetch(path, { method, key: ADMIN_KEY, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }) });

describe('reservations over HTTP', () => {
  test('an endpoint is named as callers know it, and what was promised comes back', async () => {
    let asked: unknown;
    world.commands.serve(makeReservation, ({ level }) => {
      asked = level;
      return { kind: 'ok', value: { kind: 'made' as const, reservation: view() } };
    });
    const answer = await admin('/admin/v1/reservations', 'POST', { endpoint: 'public-model', requests_per_s: 12, tolerates: 'replica', latency_class: 'standard' });
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ reservationId: 'res_01', status: 'in-force' });
    expect(asked).toMatchObject({ endpointId: 'ep_1', requestsPerS: 12, tolerates: 'replica', latencyClass: 'standard', ttftMs: null, from: null });
  });

  test('a refusal is a problem that names what would fit', async () => {
    world.commands.serve(makeReservation, () => ({ kind: 'ok', value: { kind: 'refused' as const, refusal } }));
    const answer = await admin('/admin/v1/reservations', 'POST', { endpoint: 'public-model', requests_per_s: 200 });
    expect(answer.status).toBe(409);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(await answer.json()).toMatchObject({ code: 'reservation_refused', detail: expect.stringMatching(/200 requests\/s need .*\. 66 requests\/s would fit: 6 x H100-80GB-SXM at fp8/) as unknown });
  });

  test('bad fields are named as the caller named them', async () => {
    world.commands.serve(makeReservation, () => ({ kind: 'refused', refusal: { code: 'invalid_value', message: 'It ended already.', param: 'level.to' } }));
    expect(await (await admin('/admin/v1/reservations', 'POST', { endpoint: 'public-model', requests_per_s: 1 })).json()).toMatchObject({ code: 'invalid_value', param: 'to' });
    expect(await (await admin('/admin/v1/reservations', 'POST', { endpoint: 'nobody', requests_per_s: 1 })).json()).toMatchObject({ code: 'endpoint_not_found', param: 'endpoint' });
    expect(await (await admin('/admin/v1/reservations', 'POST', { endpoint: 'public-model', organisation_id: 'org_none', requests_per_s: 1 })).json()).toMatchObject({ code: 'not_found', param: 'organisation_id' });
    expect((await admin('/admin/v1/reservations', 'POST', { endpoint: 'public-model', replicas: 2_000 })).status).toBe(400);
  });

  test('they are listed and released', async () => {
    world.commands.serve(listReservations, () => ({ kind: 'ok', value: { reservations: [view({ level: { ...made.level, organisationId: null } })] } }));
    expect(reservationList.parse(await (await admin('/admin/v1/reservations?include_ended=true')).json()).data).toHaveLength(1);
    world.commands.serve(releaseReservation, ({ reservationId }) => ({ kind: 'ok', value: { reservationId } }));
    expect(await (await admin('/admin/v1/reservations/res_01', 'DELETE')).json()).toEqual({ reservation_id: 'res_01' });
  });
});

describe('plans over HTTP', () => {
  test('a deployment and a change of nodes are tried out', async () => {
    world.commands.serve(planDeployment, ({ isExact }) => ({ kind: 'ok', value: { plan, requestsPerS: isExact ? 1 : 2, isExact, profiles: [], advice } }));
    world.commands.serve(planNodes, ({ add }) => ({ kind: 'ok', value: { plan, added: add } }));
    expect(planBody.parse(await (await admin('/admin/v1/plans', 'POST', { deployment: { model: 'm', exact: true } })).json())).toMatchObject({ requests_per_s: 1, exact: true, advice: { kind: 'keep' } });
    expect(planBody.parse(await (await admin('/admin/v1/plans', 'POST', { nodes: { add: ['4xH100'] } })).json())).toMatchObject({ added: ['4xH100'], requests_per_s: null, advice: null });
  });

  test('one of both, and bad fields by the names of the caller', async () => {
    for (const body of [{}, { nodes: {}, deployment: { model: 'm' } }]) expect(await (await admin('/admin/v1/plans', 'POST', body)).json()).toMatchObject({ code: 'invalid_value' });
    world.commands.serve(planNodes, () => ({ kind: 'refused', refusal: { code: 'not_found', message: 'No node n9 is up.', param: 'removeNodeIds[0]' } }));
    expect(await (await admin('/admin/v1/plans', 'POST', { nodes: { remove: ['n9'] } })).json()).toMatchObject({ code: 'not_found', param: 'nodes.remove[0]' });
    world.commands.serve(planDeployment, () => ({ kind: 'refused', refusal: { code: 'invalid_value', message: 'No GPU of type x.', param: 'gpuType' } }));
    expect(await (await admin('/admin/v1/plans', 'POST', { deployment: { model: 'm', gpu_type: 'x' } })).json()).toMatchObject({ param: 'deployment.gpu_type' });
  });

  test('while the scheduler is away the caller is told so', async () => {
    world.commands.withdraw(planNodes);
    expect((await admin('/admin/v1/plans', 'POST', { nodes: { add: ['4xH100'] } })).status).toBe(503);
  });
});

describe('advice on a deployment', () => {
  test('comes with the answer, and a deployment goes on without it', async () => {
    world.commands.serve(registerModelVersion, () => ({ kind: 'ok', value: { modelVersionId: 'mv_9', status: 'submitted' as const } }));
    let deployed: unknown;
    world.commands.serve(deployEndpoint, (request) => {
      deployed = request;
      return { kind: 'ok', value: { endpointId: 'ep_9', created: true, sequence: 1 } };
    });
    const body = { model_name: 'm9', model_artifact: 'sim://', framework: 'engine-sim', serving: { exact_reproducibility: true } };
    expect(await (await admin('/v1/models/deploy', 'POST', body)).json()).toMatchObject({ endpoint_id: 'ep_9', advice: null });
    let asked: unknown;
    world.commands.serve(adviseDeployment, (request) => {
      asked = request;
      return { kind: 'ok', value: { advice } };
    });
    expect(await (await admin('/v1/models/deploy', 'POST', body)).json()).toMatchObject({ advice: { kind: 'keep', says: 'Nothing known is cheaper.' } });
    expect(asked).toMatchObject({ model: 'ep_9', isExact: true, replicas: 1 });
    expect(deployed).toMatchObject({ rules: { isExact: true, nodes: 1 } });
  });
});

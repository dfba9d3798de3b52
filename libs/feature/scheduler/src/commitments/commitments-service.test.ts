import { listReservations, makeReservation, planDeployment, planNodes, releaseReservation, adviseDeployment } from '@penstock/contract-commands';
import { nodeJoinedV2, type NodeJoinedV2 } from '@penstock/contract-events';
import { nodeDecider, nodeRef } from '@penstock/domain-lifecycle';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { z } from 'zod';
import { schedulerConfig } from '../config.js';
import { FakeAgent, FleetWorld } from '../fleet-world-suite.js';
import { startScheduler } from '../start-scheduler.js';

const GIB = 1_073_741_824;
const MODEL = 'meta-llama/Llama-3.1-8B-Instruct';

let world: FleetWorld;

beforeEach(async () => {
  world = new FleetWorld();
  const service = await startScheduler(schedulerConfig.parse({ HEARTBEAT_TIMEOUT_MS: '86400000' }), world.ports());
  world.closers.push(() => service.close());
});

afterEach(() => world.close());

/** A node of two H100 that reach each other. */
async function join(nodeId: string, overrides: Partial<NodeJoinedV2> = {}): Promise<void> {
  const example = nodeJoinedV2.schema.parse(nodeJoinedV2.example);
  const accelerators = [0, 1].map((index) => ({ acceleratorId: `acc_${nodeId}_${index}`, type: 'h100', memoryBytes: 80 * GIB, usableBytes: 79 * GIB, computeMilli: 1_000, device: String(index), islandId: 'a', mig: null }));
  await world.handle(nodeDecider, nodeRef(nodeId), { kind: 'join', ...example, nodeId, hostname: nodeId, failureDomain: `rack-${nodeId}`, accelerators, cpuCores: 96, memoryBytes: 1_000 * GIB, ...overrides });
  await world.run(100);
}

/** An endpoint of a well-known model on H100. */
async function deploy(endpointId: string): Promise<void> {
  await world.deploy(endpointId, { minReplicas: 0, maxReplicas: 4 }, { hardware: { acceleratorType: 'h100', acceleratorCount: 1 } }, { modelName: MODEL, precision: 'BF16' });
  await world.run(100);
}

type Level = z.input<typeof makeReservation.request>['level'];
const level = (endpointId: string, part: Partial<Level> = {}): Level => ({
  endpointId, organisationId: null, requestsPerS: 5, tokensPerS: 0, replicas: 0, promptTokens: 1_000, completionTokens: 200, latencyClass: 'interactive', ttftMs: null, itlMs: null, priority: 500, gpuType: null, tolerates: 'nothing', from: null, to: null, ...part,
});

async function reserve(asked: Level) {
  const reply = await world.commands.send(makeReservation, { level: asked });
  await world.run(100);
  return reply;
}

describe('reservations', () => {
  test('a rate is admitted through the profile, told in the log, listed, and released', async () => {
    await join('n1');
    await deploy('ep_1');
    const reply = await reserve(level('ep_1', { tolerates: 'replica' }));
    expect(reply).toMatchObject({ kind: 'ok', value: { kind: 'made', reservation: { status: 'in-force', capacity: { gpuType: 'H100-80GB-SXM', precision: 'bf16' } } } });
    expect(world.eventsOf('reservation.made.v1')).toHaveLength(1);
    // Each promised replica has the compute that the rate needs to itself.
    await world.run(1_000);
    const share = reply.kind === 'ok' && reply.value.kind === 'made' ? reply.value.reservation.capacity?.parts[0]?.computeMilli : undefined;
    expect(world.living('ep_1').map(({ computeMilli }) => computeMilli)).toEqual([share, share]);
    const listed = await world.commands.send(listReservations, {});
    if (listed.kind !== 'ok' || listed.value.reservations[0] === undefined) throw new Error('it stands');
    const { reservationId, floor } = listed.value.reservations[0];
    expect(floor).toBe(2);
    expect(await world.commands.send(releaseReservation, { reservationId, reason: 'not needed' })).toEqual({ kind: 'ok', value: { reservationId } });
    expect((await world.commands.send(listReservations, {}))).toMatchObject({ value: { reservations: [] } });
    expect((await world.commands.send(listReservations, { includeEnded: true }))).toMatchObject({ value: { reservations: [{ status: 'released', reason: 'not needed' }] } });
    expect(await world.commands.send(releaseReservation, { reservationId: 'res_x', reason: '' })).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'reservationId' } });
  });

  test('what does not fit beside other promises is refused with what would, and that is told in the log too', async () => {
    await join('n1');
    await deploy('ep_1');
    await deploy('ep_2');
    const first = await reserve(level('ep_1', { requestsPerS: 15 }));
    const second = await reserve(level('ep_2', { requestsPerS: 40 }));
    expect(first).toMatchObject({ kind: 'ok', value: { kind: 'made' } });
    expect(second).toMatchObject({ kind: 'ok', value: { kind: 'refused', refusal: { code: 'no_capacity', reason: expect.stringContaining('x H100-80GB-SXM') as unknown } } });
    const kinds = second.kind === 'ok' && second.value.kind === 'refused' ? second.value.refusal.wouldFit.map(({ kind }) => kind) : [];
    expect(kinds).toContain('less');
    expect(world.eventsOf('reservation.refused.v1').map(({ data }) => (data as { code: string }).code)).toEqual(expect.arrayContaining(['no_capacity']));
  });

  test('two that are asked for at once cannot both have the same capacity', async () => {
    await join('n1');
    await deploy('ep_1');
    await deploy('ep_2');
    const replies = await Promise.all(['ep_1', 'ep_2', 'ep_1', 'ep_2'].map((endpointId) => world.commands.send(makeReservation, { level: level(endpointId, { requestsPerS: 15 }) })));
    const kinds = replies.map((reply) => (reply.kind === 'ok' ? reply.value.kind : reply.refusal.code)).sort();
    expect(kinds.filter((kind) => kind === 'made').length).toBe(2);
    expect(kinds.filter((kind) => kind === 'refused').length).toBe(2);
  });

  test('bad terms are refused with the field, and too little knowledge with what is missing', async () => {
    await join('n1');
    await deploy('ep_1');
    const faults: readonly (readonly [Level, string, string])[] = [
      [level('ep_9'), 'endpoint_not_found', 'level.endpointId'], [level('ep_1', { requestsPerS: 0 }), 'invalid_value', 'level.requestsPerS'], [level('ep_1', { to: '2020-01-01T00:00:00.000Z' }), 'invalid_value', 'level.to'],
      [level('ep_1', { gpuType: 'rtx9090' }), 'invalid_value', 'level.gpuType'],
    ];
    for (const [asked, code, param] of faults) expect(await reserve(asked)).toMatchObject({ kind: 'refused', refusal: { code, param } });
    expect(await reserve(level('ep_1', { gpuType: 'l4' }))).toMatchObject({ kind: 'ok', value: { kind: 'refused', refusal: { code: 'hardware_mismatch' } } });
    await world.deploy('ep_3', { minReplicas: 0 }, {}, { precision: null, parameters: null });
    await world.run(100);
    expect(await reserve(level('ep_3'))).toMatchObject({ kind: 'ok', value: { kind: 'refused', refusal: { code: 'no_profile', reason: expect.stringMatching(/missing: precision; parameters/) as unknown } } });
    expect(await reserve(level('ep_1', { ttftMs: 1 }))).toMatchObject({ kind: 'ok', value: { kind: 'refused', refusal: { code: 'objective_unreachable' } } });
  });
});

describe('what would be', () => {
  test('a deployment is planned on the fleet as it is, with its profiles and advice, and changes nothing', async () => {
    await join('n1');
    const events = world.log.all('EV_FLEET').length;
    const reply = await world.commands.send(planDeployment, { model: MODEL, precision: 'bf16', requestsPerS: 5 });
    expect(reply).toMatchObject({ kind: 'ok', value: { requestsPerS: 5, plan: { fits: true, placed: [{ members: [{ nodeId: 'n1' }] }], before: { gpusInUse: 0, gpus: 2 }, after: { gpusInUse: 1 } }, advice: { current: { precision: 'bf16' } } } });
    expect(world.log.all('EV_FLEET')).toHaveLength(events);
    const huge = await world.commands.send(planDeployment, { model: 'meta-llama/Llama-3.1-405B-Instruct' });
    expect(huge).toMatchObject({ kind: 'ok', value: { plan: { fits: false, refused: [{ reason: expect.stringMatching(/would hold it|no known hardware/) as unknown }] } } });
    await world.deploy('ep_cpu', { minReplicas: 0 }, {}, { modelName: MODEL, precision: 'BF16' });
    await world.run(100);
    expect(await world.commands.send(adviseDeployment, { model: 'ep_cpu' })).toMatchObject({ kind: 'ok', value: { advice: { kind: 'unknown', says: 'Neither speed nor price of cpu is known, so there is nothing to compare.' } } });
    const exact = await world.commands.send(adviseDeployment, { model: MODEL, isExact: true });
    expect(exact).toMatchObject({ kind: 'ok', value: { advice: { vetoes: [{ what: 'quantisation' }, { what: 'hardware' }] } } });
  });

  test('an endpoint that is to give the same bits is planned as it is, whatever is asked, and stays where its bits come from', async () => {
    const ofL4 = [{ acceleratorId: 'acc_l4', type: 'l4', memoryBytes: 24 * GIB, usableBytes: 23 * GIB, computeMilli: 1_000, device: '0', islandId: 'a', mig: null }];
    await FakeAgent.join(world, 'n1', 1_000 * GIB, { accelerators: [0, 1].map((index) => ({ ...ofL4[0]!, acceleratorId: `acc_n1_${index}`, type: 'h100', memoryBytes: 80 * GIB, usableBytes: 79 * GIB, device: String(index) })) });
    await world.deploy('ep_exact', { minReplicas: 1, maxReplicas: 4 }, { hardware: { acceleratorType: null, acceleratorCount: 1 } }, { modelName: MODEL, precision: 'BF16' });
    await world.rule('ep_exact', { isExact: true });
    await world.want('ep_exact', 1);
    await world.run(1_000);
    expect(world.living('ep_exact')).toMatchObject([{ phase: 'ready' }]);
    await join('n2', { accelerators: ofL4 });
    const plan = await world.commands.send(planDeployment, { model: 'ep_exact', requestsPerS: 1 });
    expect(plan).toMatchObject({ kind: 'ok', value: { isExact: true, advice: { vetoes: [{ what: 'quantisation' }, { what: 'hardware' }] } } });
    expect(plan.kind === 'ok' ? new Set(plan.value.profiles.map(({ gpuType, precision }) => `${gpuType} ${precision}`)) : undefined).toEqual(new Set(['H100-80GB-SXM bf16']));
    expect(await world.commands.send(planDeployment, { model: 'ep_exact', precision: 'fp8' })).toMatchObject({ kind: 'refused', refusal: { param: 'precision' } });
    expect(await world.commands.send(planDeployment, { model: 'ep_exact', gpuType: 'l4' })).toMatchObject({ kind: 'refused', refusal: { param: 'gpuType', message: expect.stringContaining('rounds otherwise') as unknown } });
    expect(await world.commands.send(planDeployment, { model: 'mv_ep_exact', gpuType: 'l4', precision: 'fp8' })).toMatchObject({ kind: 'ok', value: { isExact: false } });
    expect(await reserve(level('ep_exact', { gpuType: 'l4' }))).toMatchObject({ value: { kind: 'refused', refusal: { code: 'hardware_mismatch' } } });
    const nodesOf = (): readonly string[] => world.living('ep_exact').map(({ nodeId }) => nodeId).sort();
    await world.handle(nodeDecider, nodeRef('n1'), { kind: 'cordon', reason: 'a test' });
    await world.want('ep_exact', 2);
    await world.run(10_000);
    expect(nodesOf()).toEqual(['n1']);
    await world.rule('ep_exact', { isExact: false });
    await world.run(10_000);
    expect(nodesOf()).toEqual(['n1', 'n2']);
  });

  test('a change of nodes tells what moves, what is refused and which promises break', async () => {
    await join('n1');
    await join('n2');
    await deploy('ep_1');
    await reserve(level('ep_1', { requestsPerS: 30 }));
    const reply = await world.commands.send(planNodes, { add: ['4xH100'], removeNodeIds: ['n1'] });
    expect(reply).toMatchObject({ kind: 'ok', value: { added: ['1 x h100-4x-SXM'], plan: { fits: true, after: { gpus: 6 } } } });
    const lost = await world.commands.send(planNodes, { loseDomains: ['rack-n1', 'rack-n2'] });
    expect(lost).toMatchObject({ kind: 'ok', value: { plan: { fits: false, after: { gpus: 0, dollarsPerHour: 0 } } } });
    expect(lost.kind === 'ok' ? lost.value.plan.brokenReservations : []).toHaveLength(1);
  });

  test('bad questions are refused with the field and the next step', async () => {
    await join('n1');
    const model = await world.commands.send(planDeployment, { model: 'nobody/knows-it' });
    expect(model).toMatchObject({ kind: 'refused', refusal: { code: 'model_not_found', param: 'model' } });
    expect(await world.commands.send(planDeployment, { model: MODEL, gpuType: 'rtx9090' })).toMatchObject({ kind: 'refused', refusal: { param: 'gpuType', message: expect.stringContaining('H100-80GB-SXM') as unknown } });
    expect(await world.commands.send(planDeployment, { model: MODEL, precision: 'fp3' })).toMatchObject({ kind: 'refused', refusal: { param: 'precision', message: expect.stringContaining('bf16, fp8, int4') as unknown } });
    expect(await world.commands.send(planNodes, {})).toMatchObject({ kind: 'refused', refusal: { param: 'add' } });
    expect(await world.commands.send(planNodes, { add: ['some'] })).toMatchObject({ kind: 'refused', refusal: { param: 'add[0]' } });
    expect(await world.commands.send(planNodes, { add: ['3xrtx9090'] })).toMatchObject({ kind: 'refused', refusal: { param: 'add[0]', message: expect.stringContaining('Shapes:') as unknown } });
    expect(await world.commands.send(planNodes, { removeNodeIds: ['n9'] })).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'removeNodeIds[0]' } });
    expect(await world.commands.send(planNodes, { loseDomains: ['rack-9'] })).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'loseDomains[0]' } });
  });
});

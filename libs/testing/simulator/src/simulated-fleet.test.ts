import type { ReplicaAssignment } from '@penstock/domain-lifecycle';
import { GeometryStepRefused } from '@penstock/domain-lifecycle';
import { FleetDescriptionError, readFleetDescription, SimulatedFleet, type FleetDescriptionInput } from '@penstock/infra-simulated-fleet';
import { silentLogger } from '@penstock/kernel';
import { replicaDriverSuite } from '@penstock/testing-kit/suites';
import { describe, expect, test } from '@jest/globals';
import { ModelledEngines } from './modelled-engines.js';
import { simulateTrace } from './simulate-trace.js';
import { VirtualTime } from './virtual-time.js';
import { engineDefaults, linearStepTime, timingProfile } from '@penstock/domain-engine-model';

const HOUR_MS = 3_600_000;
const GB = 1_000_000_000;

function worldOf(description: FleetDescriptionInput) {
  const time = new VirtualTime();
  const engines = new ModelledEngines(time, time);
  const fleet = new SimulatedFleet({ description: readFleetDescription(description), clock: time, timers: time, engines, agentVersion: '0.1.0', logger: silentLogger });
  return { time, engines, fleet, driver: fleet.driver() };
}

function assignmentOn(nodeId: string, gpu: number, change: Partial<ReplicaAssignment> = {}): ReplicaAssignment {
  const acceleratorIds = [`${nodeId}-gpu-${gpu}`];
  return {
    replicaId: 'rep_1', endpointId: 'ep_1', modelVersionId: 'mv_1', nodeId, acceleratorIds, members: [{ nodeId, acceleratorIds }], mig: null, tolerations: [], reservedBytes: 30 * GB, engine: 'vllm', modelName: 'Llama-3.1-8B-Instruct',
    source: { kind: 'hugging-face', repository: 'meta-llama/Llama-3.1-8B-Instruct', revision: 'main', files: [] }, slots: 32, contextTokens: 8_192, engineOptions: {}, ...change,
  };
}

const HGX: FleetDescriptionInput = { nodes: [{ shape: 'hgx-8xH100-SXM', count: 2 }] };

replicaDriverSuite('the simulated fleet', async () => {
  const { time, fleet, driver } = worldOf(HGX);
  return {
    driver,
    assignment: (replicaId) => assignmentOn('sim-1', 0, { replicaId }),
    pass: async () => void (await time.run(HOUR_MS)),
    crash: (replicaId) => fleet.crashEngine(replicaId),
    close: () => driver.close(),
  };
});

describe('a simulated fleet', () => {
  test('is described in words that are checked', () => {
    expect(() => readFleetDescription({ nodes: [{ shape: 'hgx-8xH100-SXM', colour: 'red' }] })).toThrow(FleetDescriptionError);
    expect(() => worldOf({ nodes: [{ shape: 'dgx-1' }] })).toThrow(/nodes\.0\.shape is dgx-1: take one of hgx-8xH100-SXM/);
    expect(() => worldOf({ nodes: [{ shape: 'l4-1x', mig: [] }] })).toThrow(/L4-24GB cannot be partitioned/);
    expect(() => worldOf({ nodes: [{ shape: 'h100-4x-SXM', mig: [{ profile: '3g.40gb', start: 0 }, { profile: '4g.40gb', start: 0 }] }] })).toThrow(/slice 0 is taken twice/);
  });

  test('offers usable memory, islands, racks, prices and the market', () => {
    const { driver } = worldOf({ nodes: [{ shape: 'h100-pcie-pairs', count: 3, nodesPerDomain: 2, market: 'spot', taints: ['team=a'] }] });
    const [first, , third] = driver.nodes().map((node) => node.report);
    expect(first?.accelerators.map((gpu) => gpu.islandId)).toEqual(['sim-1-island-0', 'sim-1-island-0', 'sim-1-island-1', 'sim-1-island-1']);
    expect(first).toMatchObject({ market: 'spot', taints: ['team=a'], failureDomain: 'sim-rack-0-0' });
    expect(third?.failureDomain).toBe('sim-rack-0-1');
    expect(first?.accelerators[0]).toMatchObject({ type: 'h100', usableBytes: 81_101 * 1_048_576, computeMilli: 1_000 });
  });

  test('pulls once for a node, shares the registry fairly, and starts warm from the cache', async () => {
    const { time, driver } = worldOf({ ...HGX, registryGBps: 1 });
    const startedMs = time.now();
    await driver.start(assignmentOn('sim-1', 0));
    await driver.start(assignmentOn('sim-1', 1, { replicaId: 'rep_2' }));
    await driver.start(assignmentOn('sim-2', 0, { replicaId: 'rep_3' }));
    const untilAll = (phase: string) => time.run(HOUR_MS, () => driver.replicas().every((replica) => replica.phase === phase));
    await untilAll('loading');
    // 16.06 GB to each of two nodes at half of 1 GB/s.
    expect((time.now() - startedMs) / 1_000).toBeCloseTo(32.1, 0);
    await untilAll('serving');
    await driver.remove('rep_1');
    await driver.start(assignmentOn('sim-1', 0, { replicaId: 'rep_4' }));
    expect(driver.replicas().find((replica) => replica.replicaId === 'rep_4')?.phase).toBe('loading');
  });

  test('takes longer to load the larger the model, as published cold starts do', async () => {
    const secondsOf = async (modelName: string, reservedBytes: number): Promise<number> => {
      const { time, driver } = worldOf(HGX);
      const acceleratorIds = [0, 1, 2, 3].map((gpu) => `sim-1-gpu-${gpu}`);
      const startedMs = time.now();
      await driver.start(assignmentOn('sim-1', 0, { modelName, reservedBytes, acceleratorIds, members: [{ nodeId: 'sim-1', acceleratorIds }], source: { kind: 'directory', path: '/models' } }));
      await time.run(HOUR_MS, () => driver.replicas()[0]?.phase === 'serving');
      return (time.now() - startedMs) / 1_000;
    };
    const [small, large] = [await secondsOf('Llama-3.1-8B-Instruct', 60 * GB), await secondsOf('Llama-3.1-70B-Instruct', 280 * GB)];
    expect(small).toBeGreaterThan(10);
    expect(small).toBeLessThan(35);
    // ServerlessLLM reports 84 s for Llama 2 70B.
    expect(large).toBeGreaterThan(70);
    expect(large).toBeLessThan(120);
  });

  test('an engine on memory that another one holds dies of it, whatever anybody planned', async () => {
    const { time, driver } = worldOf(HGX);
    await driver.start(assignmentOn('sim-1', 0, { reservedBytes: 60 * GB }));
    await time.run(HOUR_MS);
    await driver.start(assignmentOn('sim-1', 0, { replicaId: 'rep_2' }));
    await time.run(HOUR_MS);
    expect(driver.replicas().map((replica) => [replica.phase, replica.end?.reason.slice(0, 18)])).toEqual([['serving', undefined], ['ended', 'CUDA out of memory']]);
  });

  test('a lost node takes what ran on it, a node that is cut off keeps it, and a spot node goes after its notice', async () => {
    const { time, fleet, driver } = worldOf({ nodes: [{ shape: 'hgx-8xH100-SXM', count: 3, market: 'spot' }] });
    for (const node of [1, 2, 3]) await driver.start(assignmentOn(`sim-${node}`, 0, { replicaId: `rep_${node}` }));
    await time.run(HOUR_MS);
    fleet.failNode('sim-1');
    fleet.setReachable('sim-2', false);
    fleet.reclaim('sim-3', 30_000);
    expect(driver.replicas().map((replica) => replica.replicaId)).toEqual(['rep_3']);
    expect(driver.nodes().map((node) => [node.isReady, node.reason, node.reclaimAt === undefined])).toEqual([[false, 'it has no power', true], [false, 'it cannot be reached', true], [true, null, false]]);
    await expect(driver.start(assignmentOn('sim-2', 1, { replicaId: 'rep_4' }))).rejects.toThrow('does not answer');
    await time.run(60_000);
    expect(driver.nodes().map((node) => node.report.nodeId)).toEqual(['sim-1', 'sim-2']);
    fleet.setReachable('sim-2', true);
    fleet.returnNode('sim-1');
    expect(driver.replicas().map((replica) => replica.replicaId)).toEqual(['rep_2']);
    expect(driver.nodes().every((node) => node.isReady)).toBe(true);
  });

  test('a gang starts as a whole and ends as a whole', async () => {
    const { time, fleet, driver } = worldOf(HGX);
    const members = ['sim-1', 'sim-2'].map((nodeId) => ({ nodeId, acceleratorIds: [`${nodeId}-gpu-0`, `${nodeId}-gpu-1`] }));
    await driver.start(assignmentOn('sim-1', 0, { members, acceleratorIds: members[0]!.acceleratorIds, reservedBytes: 240 * GB }));
    await time.run(HOUR_MS);
    expect(driver.replicas()[0]?.phase).toBe('serving');
    fleet.failNode('sim-2');
    expect(driver.replicas()[0]).toMatchObject({ phase: 'ended', end: { wasAsked: false, reason: 'node sim-2 lost power' } });
    await driver.remove('rep_1');
    await driver.start(assignmentOn('sim-1', 0, { replicaId: 'rep_2' }));
    await time.run(HOUR_MS);
    expect(driver.replicas()[0]?.phase).toBe('serving');
  });
});

describe('MIG on a simulated GPU', () => {
  const on = { nodeId: 'sim-1', acceleratorId: 'sim-1-gpu-0' };

  test('takes its time, refuses what a driver refuses, and an engine waits for its instance', async () => {
    const { time, driver } = worldOf({ nodes: [{ shape: 'h100-4x-SXM', mig: [{ profile: '4g.40gb', start: 0 }] }] });
    const mig = { profile: '3g.40gb', start: 4 };
    await driver.start(assignmentOn('sim-1', 0, { mig }));
    await time.run(HOUR_MS);
    expect(driver.replicas()[0]?.phase).toBe('pulling');
    const steps = Promise.all([driver.mig?.take({ ...on, kind: 'create', ...mig }), driver.mig?.take({ ...on, kind: 'create', ...mig })]);
    await time.run(HOUR_MS);
    expect(await steps).toEqual([{ uuid: 'MIG-sim-1-gpu-0-3g.40gb-4' }, { uuid: 'MIG-sim-1-gpu-0-3g.40gb-4' }]);
    expect(driver.replicas()[0]?.phase).toBe('serving');
    const refused = Promise.allSettled([driver.mig?.take({ ...on, kind: 'create', profile: '2g.20gb', start: 4 }), driver.mig?.take({ ...on, kind: 'destroy', ...mig })]);
    await time.run(HOUR_MS);
    for (const result of await refused) expect(result).toMatchObject({ status: 'rejected', reason: expect.any(GeometryStepRefused) as unknown });
    const destroyed = driver.mig?.take({ ...on, kind: 'destroy', profile: '4g.40gb', start: 0 });
    await time.run(HOUR_MS);
    expect(await destroyed).toEqual({ uuid: null });
    expect(driver.nodes()[0]?.report.accelerators[0]?.mig?.instances).toEqual([{ ...mig, uuid: 'MIG-sim-1-gpu-0-3g.40gb-4' }]);
  });
});

describe('traffic on a simulated fleet', () => {
  test('takes as long as the engine model says, and breaks when the engine does', async () => {
    const { time, engines, fleet, driver } = worldOf(HGX);
    await driver.start(assignmentOn('sim-1', 0, { engineOptions: { timing_model: 'h100-llama-3.1-8b' } }));
    await time.run(HOUR_MS);
    const engine = engines.engineOf('rep_1');
    const requests = Array.from({ length: 20 }, (_, index) => ({ id: `req_${index}`, promptTokens: 500, outputTokens: 50 }));
    const profile = timingProfile('h100-llama-3.1-8b');
    const alone = simulateTrace(requests.map((request) => ({ ...request, arrivalMs: 0 })), { ...engineDefaults, sequencesMax: 32, kvBlocks: Math.floor(profile.kvTokens / 16), stepTime: linearStepTime(profile.step) });
    const answers = Promise.all(requests.map((request) => new Promise((resolve) => engine?.submit(request, resolve))));
    await time.run(HOUR_MS);
    const seen = (await answers) as { kind: string; answer: { ttftMs: number; e2eMs: number } }[];
    expect(seen.map(({ kind }) => kind)).toEqual(requests.map(() => 'answered'));
    // All come at once here; the engine takes the first one before it knows of the others.
    expect(Math.max(...seen.map(({ answer }) => answer.e2eMs))).toBeCloseTo(Math.max(...alone.timings.map((timing) => timing.e2eMs)), -2);
    const broken = new Promise((resolve) => engine?.submit({ id: 'late', promptTokens: 100, outputTokens: 1_000 }, resolve));
    await time.run(10);
    fleet.crashEngine('rep_1');
    expect(await broken).toEqual({ kind: 'broken', reason: 'the engine ended' });
  });
});

import { describe, expect, test } from '@jest/globals';
import { reservationMadeV1, reservationRefusedV1, type ReservationMadeV1, type ServiceLevel } from '@penstock/contract-events';
import fc from 'fast-check';
import { GPU_TYPES, gpuTypeOf, type GpuType } from '../catalogue/gpu-types.js';
import { MODEL_FACTS, type ModelFacts } from '../catalogue/model-facts.js';
import { FleetPlanner } from '../fleet/fleet-planner.js';
import { hardwareHint, type FleetHardware } from '../fleet/fleet-options.js';
import type { FleetNode } from '../fleet/fleet-types.js';
import { profilesFor } from '../profiles/model-profiles.js';
import { admitReservation, type Admission } from './admit-reservation.js';
import { capacityOptions, demandOf, optionOf } from './capacity-options.js';
import { chooseVictims, type Holder } from './choose-victims.js';
import { commitmentDecider, commitmentProjection, floorsAt, overdue, windowOf, type CommitmentBook } from './commitment-book.js';
import { checkTerms, promisedRate } from './service-terms.js';

const NOW = Date.parse('2026-12-01T00:00:00.000Z');
const HOUR = 3_600_000;
const at = (hours: number): string => new Date(NOW + hours * HOUR).toISOString();
const gpu = (type: string): GpuType => gpuTypeOf(type) as GpuType;
const llama = MODEL_FACTS.find(({ id }) => id === 'meta-llama/Llama-3.1-8B-Instruct') as ModelFacts;
const node = (nodeId: string, part: Partial<FleetNode> = {}): FleetNode => ({
  nodeId, gpuType: 'H100-80GB-SXM', gpus: 2, islands: [[0, 1]], vramMib: 81_101, cpuMilli: 96_000, hostMemoryMib: 500_000, failureDomain: nodeId, sharing: 'shares', market: 'on_demand', pricePerGpu: 3.5, taints: [], isCordoned: false, ...part,
});
const H100: FleetHardware = { gpu: gpu('H100-80GB-SXM'), sharing: 'shares', tensorParallel: [1, 2], gangPerNode: 0 };
const L4: FleetHardware = { gpu: gpu('L4-24GB'), sharing: 'shares', tensorParallel: [1], gangPerNode: 0 };
const LEVEL: ServiceLevel = {
  endpointId: 'ep_1', organisationId: null, requestsPerS: 10, tokensPerS: 0, replicas: 0, promptTokens: 1_000, completionTokens: 200, latencyClass: 'interactive', ttftMs: 2_000, itlMs: 80,
  priority: 500, gpuType: null, tolerates: 'nothing', from: at(1), to: at(25),
};

function admit(level: ServiceLevel, nodes: readonly FleetNode[], commitments: readonly ReservationMadeV1[] = [], hardware: readonly FleetHardware[] = [H100]): Admission {
  const shape = { promptTokens: level.promptTokens, completionTokens: level.completionTokens };
  const { profiles } = profilesFor({ modelVersionId: 'mv_1', model: llama, precisions: ['fp8'], hardware, shape, measured: [] });
  return admitReservation({
    reservationId: `res_${commitments.length + 1}`, level, nodes, commitments, nowMs: NOW, hint: hardwareHint(llama, ['fp8'], hardware, GPU_TYPES, shape),
    optionsFor: (asked) => capacityOptions({ level: asked, model: llama, profiles, hardware, domainsWith: (type) => new Set(nodes.filter(({ gpuType }) => gpuType === type).map(({ failureDomain }) => failureDomain)).size, pricePerGpu: (type) => gpuTypeOf(type)?.price.onDemand ?? null }),
    nodeToAdd: (type) => (type === 'H100-80GB-SXM' ? node('x') : undefined),
  });
}

const made = (admission: Admission): ReservationMadeV1 => {
  if (admission.kind === 'refused') throw new Error(admission.data.reason);
  return admission.data;
};

describe('terms', () => {
  test('the larger of both rates counts, and terms that make no sense are refused with the field and the next step', () => {
    expect(promisedRate({ ...LEVEL, requestsPerS: 1, tokensPerS: 12_000 })).toBe(10);
    expect(checkTerms(LEVEL, NOW)).toBeUndefined();
    const faults: readonly (readonly [Partial<ServiceLevel>, string])[] = [
      [{ requestsPerS: 0 }, 'requestsPerS'], [{ replicas: 2 }, 'replicas'], [{ promptTokens: 0, completionTokens: 0 }, 'promptTokens'], [{ ttftMs: 0 }, 'ttftMs'],
      [{ to: at(0.5) }, 'to'], [{ from: at(-3), to: at(-2) }, 'to'], [{ from: at(24 * 1_200), to: null }, 'from'], [{ to: at(24 * 1_200) }, 'to'],
    ];
    for (const [part, param] of faults) expect(checkTerms({ ...LEVEL, ...part }, NOW)).toMatchObject({ code: 'invalid_value', param, message: expect.stringMatching(/[:.] .+[.:]?/) as unknown });
  });
});

describe('admission', () => {
  test('a rate becomes replicas at the knee, and is admitted where they fit', () => {
    const { capacity, reason } = made(admit(LEVEL, [node('a'), node('b')]));
    expect(capacity).toMatchObject({ gpuType: 'H100-80GB-SXM', precision: 'fp8', figuresFrom: 'estimated' });
    expect(capacity.requestsPerS).toBeGreaterThanOrEqual(10);
    expect(reason).toContain('requests/s within 2000 ms');
  });

  test('what may fail is added: one replica, or as many as a failure domain holds', () => {
    const nodes = ['a', 'b', 'c'].map((name) => node(name, { gpus: 8, islands: [[0, 1, 2, 3, 4, 5, 6, 7]] }));
    const count = (level: ServiceLevel): number => optionOf(made(admit(level, nodes)).capacity).parts.length;
    const plain = count({ ...LEVEL, requestsPerS: 100 });
    expect(plain).toBeGreaterThan(1);
    expect(count({ ...LEVEL, requestsPerS: 100, tolerates: 'replica' })).toBe(plain + 1);
    const { capacity } = made(admit({ ...LEVEL, requestsPerS: 100, tolerates: 'failure-domain' }, nodes));
    const total = optionOf(capacity).parts.length;
    expect(total - (capacity.perDomainMax ?? 0)).toBeGreaterThanOrEqual(plain);
    const planner = new FleetPlanner(nodes);
    planner.arrive(demandOf('r', { option: optionOf(capacity), capacity }));
    planner.loseDomain('a');
    expect(admit({ ...LEVEL, tolerates: 'failure-domain' }, [node('a')])).toMatchObject({ kind: 'refused', data: { code: 'objective_unreachable' } });
  });

  test('a refusal names how much, when and on which hardware it would fit, and each of those is admitted', () => {
    const nodes = [node('a'), node('l', { gpuType: 'L4-24GB', gpus: 8, islands: [[0], [1], [2], [3], [4], [5], [6], [7]], vramMib: 22_528, pricePerGpu: 0.75 })];
    const first = made(admit({ ...LEVEL, requestsPerS: 20, gpuType: 'H100-80GB-SXM', to: at(13) }, nodes));
    const asked: ServiceLevel = { ...LEVEL, requestsPerS: 20, gpuType: 'H100-80GB-SXM', from: at(2), to: at(14) };
    const refused = admit(asked, nodes, [first, { ...first, reservationId: 'res_9' }], [H100, L4]);
    const filled = admit(asked, nodes, Array.from({ length: 4 }, (_, index) => ({ ...first, reservationId: `res_f${index}` })), [H100, L4]);
    const refusal = refused.kind === 'refused' ? refused : filled;
    expect(refusal).toMatchObject({ kind: 'refused', data: { code: 'no_capacity' } });
    if (refusal.kind !== 'refused') return;
    expect(refusal.data.reason).toMatch(/requests\/s need .* x H100-80GB-SXM, \d+ replicas; 2 are there and \d are promised|requests\/s need .* 2 are there and \d of them are promised/);
    const commitments = refused.kind === 'refused' ? [first, { ...first, reservationId: 'res_9' }] : Array.from({ length: 4 }, (_, index) => ({ ...first, reservationId: `res_f${index}` }));
    const kinds = new Set(refusal.data.wouldFit.map(({ kind }) => kind));
    expect(kinds).toContain('later');
    expect(kinds).toContain('more-nodes');
    for (const option of refusal.data.wouldFit) {
      expect(option.says).toMatch(/would fit/);
      if (option.kind === 'later') expect(admit({ ...asked, from: option.from, to: at(40) }, nodes, commitments, [H100, L4]).kind).toBe('admitted');
      if (option.kind === 'less') expect(admit({ ...asked, requestsPerS: asked.requestsPerS * option.share }, nodes, commitments, [H100, L4]).kind).toBe('admitted');
      if (option.kind === 'other-hardware') expect(admit({ ...asked, gpuType: option.gpuType }, nodes, commitments, [H100, L4]).kind).toBe('admitted');
    }
  });

  test('an objective that nothing keeps is refused with what would hold the model', () => {
    const outcome = admit({ ...LEVEL, ttftMs: 1, itlMs: 1 }, [node('a')]);
    expect(outcome).toMatchObject({ kind: 'refused', data: { code: 'objective_unreachable', reason: expect.stringContaining('no profile keeps 1 ms') as unknown } });
  });

  test('whatever is asked for, promises that stand at the same time fit the fleet together', () => {
    const levels = fc.array(fc.record({ requestsPerS: fc.integer({ min: 1, max: 60 }), from: fc.integer({ min: 0, max: 40 }), hours: fc.integer({ min: 1, max: 30 }), priority: fc.integer({ min: 0, max: 9 }) }), { minLength: 1, maxLength: 12 });
    fc.assert(fc.property(levels, (asked) => {
      const nodes = [node('a'), node('b')];
      const standing: ReservationMadeV1[] = [];
      for (const { from, hours, ...terms } of asked) {
        const outcome = admit({ ...LEVEL, ...terms, from: at(from), to: at(from + hours) }, nodes, standing);
        if (outcome.kind === 'admitted') standing.push({ ...outcome.data, reservationId: `res_${standing.length}` });
      }
      for (const { level } of standing) {
        const together = standing.filter((other) => windowOf(other).beginMs <= Date.parse(level.from) && windowOf(other).endMs > Date.parse(level.from)).sort((one, other) => other.level.priority - one.level.priority);
        const gpus = together.reduce((sum, { capacity }) => sum + optionOf(capacity).parts.reduce((total, part) => total + (part.accelerators * part.computeMilli) / 1_000, 0), 0);
        expect(gpus).toBeLessThanOrEqual(4 + 1e-9);
      }
    }), { numRuns: 15 });
  });
});

describe('the book of promises', () => {
  const first = reservationMadeV1.schema.parse(reservationMadeV1.example);
  const refusal = reservationRefusedV1.schema.parse(reservationRefusedV1.example);
  const record = (book: CommitmentBook, event: { type: string; data: unknown }, sequence: number): CommitmentBook => commitmentProjection.apply(book, { ...event, sequence } as Parameters<typeof commitmentProjection.apply>[1]);

  test('a promise is made once and ends once, and floors add up while they are in force', () => {
    let book = record(commitmentProjection.initialState(), { type: 'reservation.made.v1', data: first }, 7);
    book = record(book, { type: 'reservation.made.v1', data: { ...first, reservationId: 'res_b', level: { ...first.level, priority: 900 } } }, 8);
    book = record(book, { type: 'reservation.refused.v1', data: refusal }, 9);
    expect(book.lastSequence).toBe(9);
    const begin = Date.parse(first.level.from);
    expect(floorsAt(book, begin - 60_000).get('ep_01')).toEqual({ replicas: 6, priority: 900, reservationIds: ['res_b', 'res_01'], hardware: { gpuType: 'H100-80GB-SXM', migProfile: null, computeMilli: 1_000 } });
    expect(floorsAt(book, begin - 3_600_000).size).toBe(0);
    expect(commitmentDecider.decide({ kind: 'make', data: first }, book)).toEqual({ kind: 'accepted', events: [] });
    const release = { kind: 'release', reservationId: 'res_b', cause: 'operator', reason: 'not needed' } as const;
    const decided = commitmentDecider.decide(release, book);
    if (decided.kind !== 'accepted' || decided.events[0] === undefined) throw new Error('it stands');
    book = record(book, decided.events[0], 10);
    expect(commitmentDecider.decide(release, book)).toEqual({ kind: 'accepted', events: [] });
    expect(commitmentDecider.decide({ ...release, reservationId: 'res_x' }, book)).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'reservationId' } });
    expect(floorsAt(book, begin).get('ep_01')?.replicas).toBe(3);
    expect(commitmentProjection.restore(JSON.parse(JSON.stringify(commitmentProjection.snapshot(book))))).toEqual(book);
  });

  test('what is over, and what has no endpoint any more, is due', () => {
    const ending = { ...first, reservationId: 'res_e', level: { ...first.level, endpointId: 'ep_02', to: at(10) } };
    const book = [first, ending].reduce((known, data, index) => record(known, { type: 'reservation.made.v1', data }, index + 1), commitmentProjection.initialState());
    expect(overdue(book, NOW + 11 * HOUR, (endpointId) => endpointId === 'ep_01').map(({ reservationId, cause }) => [reservationId, cause])).toEqual([['res_01', 'endpoint-retired'], ['res_e', 'expired']]);
    expect(overdue(book, NOW, () => false)).toEqual([]);
  });
});

describe('preemption', () => {
  const share = (computeMilli: number) => ({ accelerators: 1, nodes: 1, computeMilli, vramMib: computeMilli * 80, migProfile: null, cpuMilli: 0, hostMemoryMib: 0 });
  const ways = (computeMilli: number) => [{ pool: 0, part: share(computeMilli) }];
  const everywhere = (): boolean => true;

  function filled(sizes: readonly (readonly [milli: number, priority: number, dollars: number, gpu: number])[]) {
    const planner = new FleetPlanner([node('a', { gpus: 1, islands: [[0]] }), node('b', { gpus: 1, islands: [[0]] })]);
    const holders = sizes.map(([milli, priority, moveDollars, gpuIndex], index): Holder => {
      const seated = { part: share(milli), seat: { gpus: [gpuIndex], nodes: [gpuIndex], start: null } };
      planner.state.take(seated.part, seated.seat);
      return { replicaId: `r${index}`, endpointId: `e${index}`, priority, moveDollars, seated, isLeaving: false };
    });
    return { state: planner.state, holders };
  }

  test('the lowest priority goes first, then the cheapest, and nobody goes in vain', () => {
    const { state, holders } = filled([[500, 100, 9, 0], [500, 200, 1, 0], [500, 100, 2, 1], [500, 300, 1, 1]]);
    const before = [...state.computeFree];
    expect(chooseVictims(state, ways(500), holders, everywhere)?.victims.map(({ replicaId }) => replicaId)).toEqual(['r2']);
    expect([...state.computeFree]).toEqual(before);
    expect(chooseVictims(state, ways(1_000), holders, everywhere)?.victims.map(({ replicaId }) => replicaId)).toEqual(['r0', 'r1']);
  });

  test('what is leaving already counts as free, and what cannot make room is not touched', () => {
    const { state, holders } = filled([[800, 100, 1, 0], [800, 100, 1, 1]]);
    expect(chooseVictims(state, ways(500), [{ ...holders[0]!, isLeaving: true }, holders[1]!], everywhere)).toMatchObject({ victims: [], dollars: 0, seat: { gpus: [0] } });
    expect(chooseVictims(state, ways(500), [], everywhere)).toBeUndefined();
    expect(chooseVictims(state, ways(500), holders, (index) => index === 1)?.victims.map(({ replicaId }) => replicaId)).toEqual(['r1']);
  });

  test('the victims always make room, and without any one of them there is none', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 1 })), { maxLength: 12 }), fc.integer({ min: 1, max: 10 }), (sizes, size) => {
      const room = [10, 10];
      const fitting = sizes.filter(([milli, , , gpuIndex]) => {
        if ((room[gpuIndex] ?? 0) < milli) return false;
        room[gpuIndex] = (room[gpuIndex] ?? 0) - milli;
        return true;
      });
      const { state, holders } = filled(fitting.map(([milli, priority, dollars, gpuIndex]) => [milli * 100, priority, dollars, gpuIndex] as const));
      const plan = chooseVictims(state, ways(size * 100), holders, everywhere);
      expect(plan).toBeDefined();
      const freed = (without?: string): number => Math.max(...[0, 1].map((gpuIndex) => (state.computeFree[gpuIndex] ?? 0) + (plan?.victims ?? []).filter(({ replicaId, seated }) => replicaId !== without && seated.seat.gpus[0] === gpuIndex).reduce((sum, { seated }) => sum + seated.part.computeMilli, 0)));
      expect(freed()).toBeGreaterThanOrEqual(size * 100);
      for (const { replicaId } of plan?.victims ?? []) expect(freed(replicaId)).toBeLessThan(size * 100);
    }), { numRuns: 150 });
  });
});

import { planBody, type PlanBody } from '@penstock/contract-http';
import { expect, test } from '@jest/globals';
import { printAdvice, printPlan } from './print-plan.js';

const way = { gpuType: 'H100-80GB-SXM', precision: 'fp8', replicas: 2, gpus: 2, dollarsPerHour: 7, figuresFrom: 'estimated' as const, quality: null };
const seat = { gpuType: 'H100-80GB-SXM', precision: 'fp8', members: [{ nodeId: 'node_01', gpus: [0, 1] }], migProfile: null, computeMilli: 1_000 };
const body: PlanBody = planBody.parse({
  added: ['1 x h100-4x-SXM'], requests_per_s: 12.345, exact: true, profiles: [{ gpuType: 'H100-80GB-SXM', slice: null, tensorParallel: 2, precision: 'fp8', weightBytes: { value: 1, from: 'measured', source: 'replica r1' }, kvTokens: { value: 1, from: 'estimated', source: 'x' }, knee: { concurrency: 32, requestsPerS: 8, ttftMs: 300, itlMs: 30, from: 'published', source: 'NIM' } }],
  plan: {
    fits: false, placed: [seat], moves: [{ ...seat, computeMilli: 250, members: [{ nodeId: 'node_02', gpus: [3] }], replicaId: 'rep_1', endpointId: 'ep_1', fromNodeIds: ['node_01'] }],
    refused: [{ endpointId: 'ep_2', replicaId: null, reason: 'no node has room' }], brokenReservations: ['res_1'],
    before: { dollarsPerHour: 7, lowerBoundDollarsPerHour: 6.5, gpusInUse: 2, gpus: 8 }, after: { dollarsPerHour: 10.5, lowerBoundDollarsPerHour: 0, gpusInUse: 3, gpus: 8 },
  },
  advice: { kind: 'better', current: way, best: way, savedDollarsPerHour: 7, savedPercent: 50, others: [way], vetoes: [{ what: 'quantisation', reason: 'it answers with numbers' }], says: 'Deploy on L4.' },
});

test('a plan says what fits, moves, is refused and costs, and where each figure is from', () => {
  const text = printPlan(body, (nodeId) => `host of ${nodeId}`).join('\n');
  for (const words of ['It does not fit. Nothing was changed.', 'added: 1 x h100-4x-SXM', 'for 12.35 requests/s', 'host of node_01 #0,1', '2 GPUs', 'host of node_02 #3', '25 %', 'no node has room', 'RESERVATIONS WITHOUT ROOM: res_1', 'published: NIM', 'the same bits', '7.7 %', '2 of 8']) expect(text).toContain(words);
});

test('advice tells what was vetoed and the other ways', () => {
  expect(printAdvice(body.advice!)).toEqual(['Deploy on L4.', 'No advice on quantisation: it answers with numbers.', 'Other ways:', '  2 replicas on 2 x H100-80GB-SXM at fp8: $7.00/h (estimated)']);
});

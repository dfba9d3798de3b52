import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { admitRequest, borrowSlots } from '@penstock/contract-commands';
import { eventually } from '@penstock/testing-kit';
import { startWorld, type World } from '../gateway-world-suite.js';

let world: World;
/** Slots that the router lends of each engine; reports are kept as they came. */
let lent = 2;
const reports: { sequence: number; slots: number; inUse: number; ok: number; failed: number }[] = [];

beforeEach(async () => {
  lent = 2;
  reports.length = 0;
  world = await startWorld();
  world.serveRouter();
  world.commands.serve(borrowSlots, ({ reports: given }) => {
    for (const { sequence, replicas } of given) for (const { slots, inUse, ok, failed } of replicas) reports.push({ sequence, slots, inUse, ok, failed });
    const loan = { replicaId: 'rep_0', modelVersionId: 'mv_1', url: world.engines[0]?.url ?? '', engine: 'vllm' as const, servedModel: 'inner-model', slots: lent, tokens: null, kvTokens: null };
    return { kind: 'ok', value: { endpoints: given.map(({ endpointId }) => ({ endpointId, loans: lent === 0 ? [] : [loan] })) } };
  });
});
afterEach(() => world.close());

const admissions = (): number => world.commands.sent.filter(({ subject }) => subject === admitRequest.subject).length;
const borrowed = () => eventually(() => reports.at(-1)?.slots ?? 0, (slots) => slots > 0);

test('once slots are lent, requests reach the engine without asking anybody', async () => {
  expect((await world.chat({})).status).toBe(200);
  expect(admissions()).toBe(1);
  await borrowed();
  const answers = await Promise.all([world.chat({}), world.chat({ stream: true })]);
  for (const answer of answers) expect(answer.status).toBe(200);
  expect(admissions()).toBe(1);
  expect(await world.usage(3)).toMatchObject([{ replicaId: 'rep_0' }, { replicaId: 'rep_0', queueMs: 0 }, { replicaId: 'rep_0', queueMs: 0 }]);
  await eventually(() => reports.reduce((sum, report) => sum + report.ok, 0), (ok) => ok === 2);
  expect(world.engines[0]?.requests).toHaveLength(3);
});

test('what is recalled is not filled any more, and the router hears at once', async () => {
  await world.chat({});
  await borrowed();
  lent = 0;
  world.signals.publish('tele.recall.ep_1', { endpointId: 'ep_1' });
  await eventually(() => reports.at(-1)?.slots, (slots) => slots === 0);
  expect((await world.chat({})).status).toBe(200);
  expect(admissions()).toBe(2);
});

test('failures on lent slots are told, and the request goes elsewhere or to the router', async () => {
  await world.chat({});
  await borrowed();
  const [engine] = world.engines;
  if (engine === undefined) throw new Error('no engine');
  engine.behaviours = [({ response }) => void response.writeHead(500).end()];
  expect((await world.chat({})).status).toBeGreaterThanOrEqual(500);
  await eventually(() => reports.reduce((sum, report) => sum + report.failed, 0), (failed) => failed >= 1);
});

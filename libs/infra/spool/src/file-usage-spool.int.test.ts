import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';

const root = resolve(import.meta.dirname, '../../../..');
const SEED = Number(process.env['SEED'] ?? 20_261_129);
const KILLS = 15;

/** A process that opens, streams and settles requests as fast as it can, telling its parent after each step. Its event log fails now and then. */
const child = `
import { appendFileSync } from 'node:fs';
const { FileUsageSpool } = await import(${JSON.stringify(pathToFileURL(join(root, 'libs/infra/spool/dist/index.js')).href)});
const [folder, logFile, truthFile, run, mode] = process.argv.slice(2);
const silent = { debug() {}, info() {}, warn() {}, error() {}, child() { return silent; } };
let appends = 0;
const log = { async append({ events }) {
  appends += 1;
  await new Promise((done) => setTimeout(done, appends % 7));
  if (mode !== 'finish' && appends % 5 === 0) throw new Error('the broker is away');
  appendFileSync(logFile, events.flatMap(({ data }) => data.records).map((data) => JSON.stringify({ id: data.requestId, tokens: data.completionTokens, status: data.status }) + '\\n').join(''));
  if (mode !== 'finish' && appends % 11 === 0) throw new Error('stored, but the confirmation was lost');
  return { kind: 'appended', lastSequence: appends, duplicate: false };
} };
const spool = await FileUsageSpool.open({ folder, log, logger: silent });
if (mode === 'finish') {
  await spool.drain(30_000);
  await spool.close();
  process.exit(0);
}
// One that every kill interrupts.
const long = { requestId: 'req_' + run + '_long', organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', endpointId: 'ep_1', modelName: 'm', modelVersionId: 'mv_1', batchId: null, operation: 'chat', stream: true, startedAt: new Date().toISOString(), replicaId: null };
await spool.open(long).written();
appendFileSync(truthFile, JSON.stringify({ id: long.requestId, kind: 'open' }) + '\\n');
let count = 0;
async function request() {
  for (;;) {
    const id = 'req_' + run + '_' + (count += 1);
    const draft = { requestId: id, organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', endpointId: 'ep_1', modelName: 'm', modelVersionId: 'mv_1', batchId: null, operation: 'chat', stream: true, startedAt: new Date().toISOString(), replicaId: null };
    const usage = spool.open(draft);
    await usage.written();
    appendFileSync(truthFile, JSON.stringify({ id, kind: 'open' }) + '\\n');
    const tokens = count % 20;
    for (let token = 1; token <= tokens; token += 1) {
      usage.progress({ replicaId: 'rep_1', promptTokens: 1, cachedTokens: 0, completionTokens: token, reasoningTokens: 0 });
      if (token % 6 === 0) await new Promise((done) => setTimeout(done, 1));
    }
    const settled = usage.settle({ ...draft, replicaId: 'rep_1', promptTokens: 1, cachedTokens: 0, completionTokens: tokens, reasoningTokens: 0, status: 'completed', finishReason: 'stop', httpStatus: 200, errorCode: null, tokensEstimated: false, queueMs: 0, ttftMs: 1, durationMs: 1, engineMs: 1 });
    await usage.written();
    appendFileSync(truthFile, JSON.stringify({ id, kind: 'settle', tokens }) + '\\n');
    process.stdout.write(id + '\\n');
    await settled;
  }
}
await Promise.all(Array.from({ length: 8 }, request));
`;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-spool-kill-'));
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'libs/contract/events', 'libs/contract/commands', 'libs/contract/http', 'libs/domain/kernel', 'libs/domain/access', 'libs/domain/usage', 'libs/infra/spool'], { cwd: root, stdio: 'ignore' });
  writeFileSync(join(folder, 'child.mjs'), child);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(run: number, mode: 'work' | 'finish') {
  return spawn(process.execPath, [join(folder, 'child.mjs'), join(folder, 'spool'), join(folder, 'log.jsonl'), join(folder, 'truth.jsonl'), String(run), mode], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Lets the child settle `steps` requests, then kills it where it stands. */
async function killAfter(run: number, steps: number): Promise<void> {
  const process_ = start(run, 'work');
  const exited = new Promise((done) => process_.once('exit', done));
  let seen = 0;
  for await (const line of createInterface({ input: process_.stdout })) {
    if (line !== '') seen += 1;
    if (seen >= steps) break;
  }
  process_.kill('SIGKILL');
  await exited;
}

const linesOf = <Line>(name: string): Line[] => readFileSync(join(folder, name), 'utf8').split('\n').filter((line) => line.endsWith('}')).map((line) => JSON.parse(line) as Line);

test(`kill -9 at ${KILLS} random points loses no request and gives none two different records (SEED=${SEED})`, async () => {
  let random = SEED;
  for (let run = 0; run < KILLS; run += 1) {
    random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
    await killAfter(run, 1 + (random % 150));
  }
  const finishing = start(KILLS, 'finish');
  expect(await new Promise((done) => finishing.once('exit', done))).toBe(0);

  const truth = linesOf<{ id: string; kind: 'open' | 'settle'; tokens?: number }>('truth.jsonl');
  const logged = new Map<string, { tokens: number; status: string }>();
  const contradictions: string[] = [];
  for (const { id, tokens, status } of linesOf<{ id: string; tokens: number; status: string }>('log.jsonl')) {
    const before = logged.get(id);
    if (before !== undefined && (before.tokens !== tokens || before.status !== status)) contradictions.push(id);
    logged.set(id, before ?? { tokens, status });
  }
  const opened = truth.filter((line) => line.kind === 'open').map((line) => line.id);
  const wrong = truth.filter((line) => line.kind === 'settle' && logged.get(line.id)?.tokens !== line.tokens);
  expect(opened.length).toBeGreaterThan(KILLS);
  expect({ lost: opened.filter((id) => !logged.has(id)), contradictions, wrong }).toEqual({ lost: [], contradictions: [], wrong: [] });
  expect([...logged.values()].filter(({ status }) => status === 'interrupted').length).toBeGreaterThan(0);
  expect(readdirSync(join(folder, 'spool'))).toEqual([]);
});

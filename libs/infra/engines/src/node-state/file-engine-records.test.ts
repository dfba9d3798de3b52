import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FileEngineRecords } from './file-engine-records.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-records-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

const record = { replicaId: 'rep_1', kind: 'llama.cpp' as const, url: 'http://127.0.0.1:1', servedModel: 'm', pid: 5, processIdentity: 'boot:1', logFile: '/x' };

test('is undefined at first, then what was saved last, with one file left', async () => {
  const path = join(folder, 'state', 'agent.json');
  const records = new FileEngineRecords(path);
  expect(await records.load()).toBeUndefined();
  await Promise.all([records.save({ nodeId: 'node_1', engines: [] }), records.save({ nodeId: 'node_1', engines: [record] })]);
  expect(await new FileEngineRecords(path).load()).toEqual({ nodeId: 'node_1', engines: [record] });
  expect(await readdir(join(folder, 'state'))).toEqual(['agent.json']);
});

test('a damaged file is told, not taken for a first start', async () => {
  const path = join(folder, 'agent.json');
  await writeFile(path, '{"nodeId":5}');
  await expect(new FileEngineRecords(path).load()).rejects.toThrow('is damaged');
  await writeFile(path, '{"nod');
  await expect(new FileEngineRecords(path).load()).rejects.toThrow('is damaged');
});

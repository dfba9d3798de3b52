import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KvEvent } from '@penstock/domain-routing';
import type { EngineProcess } from '@penstock/domain-serving';
import { eventually } from '@penstock/testing-kit';
import { EngineSimDriver } from './engine-sim-driver.js';
import { SimKvEvents } from './sim-kv-events.js';

const root = join(import.meta.dirname, '..', '..', '..', '..', '..');
const source = new SimKvEvents();
let folder: string;
let engine: EngineProcess;

beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim'], { cwd: root });
  folder = await mkdtemp(join(tmpdir(), 'penstock-kv-events-'));
  engine = await new EngineSimDriver({ scriptPath: join(root, 'apps/engine-sim/dist/main.js'), version: '0.1.0' }).start({
    replicaId: 'rep_1', modelName: 'org/tiny', modelPath: null, slots: 2, contextTokens: 1_024, options: { timing_model: 'h100-llama-3.1-8b', time_scale: 0.02, num_gpu_blocks_override: 80 },
    device: null, attachedUrl: null, logFile: join(folder, 'engine.log'), stateDir: folder,
  });
});

afterAll(async () => {
  await engine.kill();
  await rm(folder, { recursive: true, force: true });
});

async function ask(topic: string): Promise<void> {
  const content = `Tell me everything about ${topic}, and leave nothing out. `.repeat(30);
  const response = await fetch(new URL('/v1/chat/completions', engine.url), { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: engine.servedModel, messages: [{ role: 'user', content }], max_tokens: 4 }) });
  expect(response.status).toBe(200);
  await response.text();
}

test('an engine tells the size of its cache, then what enters it and what has to leave', async () => {
  await ask('tides');
  const events: KvEvent[] = [];
  const watch = source.watch({ url: engine.url }, { onEvents: (batch) => void events.push(...batch), onEnd: () => undefined });
  await eventually(() => events, (seen) => seen.length > 0);
  const [size] = events;
  expect(size).toMatchObject({ kind: 'cache-size', blockTokens: 16 });
  for (const topic of ['bees', 'clocks', 'wheels']) await ask(topic);
  await eventually(() => events, (seen) => seen.some(({ kind }) => kind === 'block-removed'));
  const sum = (kind: KvEvent['kind']): number => events.reduce((total, event) => total + (event.kind === kind && 'blocks' in event ? event.blocks : 0), 0);
  expect(sum('cache-size') + sum('block-stored') - sum('block-removed')).toBeLessThanOrEqual(80);
  expect(sum('block-stored')).toBeGreaterThan(sum('block-removed'));
  watch.close();
});

test('an end is told once, and an engine without such events has an end at once', async () => {
  let ends = 0;
  const watch = source.watch({ url: engine.url }, { onEvents: () => undefined, onEnd: () => void (ends += 1) });
  source.watch({ url: 'http://127.0.0.1:9' }, { onEvents: () => undefined, onEnd: () => void (ends += 10) });
  await eventually(() => ends, (count) => count === 10);
  await engine.stop(5_000);
  await eventually(() => ends, (count) => count === 11);
  watch.close();
  expect(ends).toBe(11);
});

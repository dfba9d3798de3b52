import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { EngineProcess, EngineRecord, EngineStartSpec } from '@penstock/domain-serving';
import { HttpEngineProbe } from '../http/http-engine-probe.js';
import { VllmDriver } from '../vllm/vllm-driver.js';
import { EngineSimDriver } from './engine-sim-driver.js';

const root = join(import.meta.dirname, '..', '..', '..', '..', '..');
const driver = new EngineSimDriver({ scriptPath: join(root, 'apps/engine-sim/dist/main.js'), version: '0.1.0' });
const probe = new HttpEngineProbe();

let folder: string;
const running: EngineProcess[] = [];

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim'], { cwd: root });
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-engine-sim-'));
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((engine) => engine.kill()));
  await rm(folder, { recursive: true, force: true });
});

function specOf(overrides: Partial<EngineStartSpec> = {}): EngineStartSpec {
  return {
    replicaId: 'rep_1', modelName: 'org/tiny', modelPath: null, slots: 2, contextTokens: 512, options: {}, device: null, attachedUrl: null,
    logFile: join(folder, 'logs', 'engine.log'), stateDir: folder, ...overrides,
  };
}

async function start(overrides: Partial<EngineStartSpec> = {}): Promise<EngineProcess> {
  const engine = await driver.start(specOf(overrides));
  running.push(engine);
  return engine;
}

const targetOf = (engine: EngineProcess) => ({ kind: 'engine-sim' as const, url: engine.url, servedModel: engine.servedModel });

describe('an engine as a process', () => {
  test('starts on a loopback port, answers a real generation, reports its load, and stops on request', async () => {
    const spawned: EngineRecord[] = [];
    const engine = await start({ onSpawned: async (record) => void spawned.push(record) });
    expect(engine.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(spawned).toEqual([engine.record]);
    expect(await probe.generate(targetOf(engine), 5_000)).toMatchObject({ kind: 'answered', completionTokens: 1 });
    expect(await probe.telemetry(targetOf(engine), 5_000)).toMatchObject({ running: 0, waiting: 0, kvCacheUsage: 0, completionTokensTotal: 1 });
    expect((await readFile(join(folder, 'truth-ledger.jsonl'), 'utf8')).trim().split('\n')).toHaveLength(2);
    await engine.stop(5_000);
    expect((await engine.exited).reason).toContain('exited with code 0');
    expect(await probe.generate(targetOf(engine), 500)).toMatchObject({ kind: 'failed' });
    expect(await probe.telemetry(targetOf(engine), 500)).toBeUndefined();
  });

  test('its environment holds no credential of the agent', async () => {
    process.env['PENSTOCK_TEST_SECRET'] = 'do-not-pass';
    const engine = await start();
    const environment = await readFile(`/proc/${engine.pid ?? 0}/environ`, 'utf8');
    delete process.env['PENSTOCK_TEST_SECRET'];
    expect(environment).not.toContain('do-not-pass');
    expect(environment).toContain('PATH=');
  });

  test('a death is seen, with the signal', async () => {
    const engine = await start();
    process.kill(engine.pid ?? 0, 'SIGKILL');
    expect((await engine.exited).reason).toContain('SIGKILL');
  });

  test('wrong options are named, and nothing is started', async () => {
    await expect(driver.start(specOf({ options: { tokens_per_second: 'fast', colour: 'red' } }))).rejects.toMatchObject({
      code: 'engine_exited', message: expect.stringMatching(/tokens_per_second.*colour/s) as unknown as string,
    });
  });

  test('an engine that ends while it starts gives its last lines as the reason', async () => {
    const doomed = new EngineSimDriver({ scriptPath: join(root, 'apps/engine-sim/dist/main.js'), version: '0.1.0', ledger: '/dev/null/x' });
    await expect(doomed.start(specOf())).rejects.toMatchObject({
      code: 'engine_exited', message: expect.stringMatching(/exited with code 1; it last printed: engine-sim cannot start/) as unknown as string,
    });
  });

  test('an engine that is not on this node is missing', async () => {
    const missing = new EngineSimDriver({ scriptPath: '/nowhere/main.js', version: '0' });
    expect(await missing.detect()).toBeUndefined();
    await expect(missing.start(specOf())).rejects.toMatchObject({ code: 'engine_missing' });
  });
});

describe('taking over', () => {
  test('the same process is found again from its record, watched and stopped', async () => {
    const engine = await start();
    const adopted = await driver.adopt(JSON.parse(JSON.stringify(engine.record)) as EngineRecord);
    expect(adopted?.pid).toBe(engine.pid);
    await adopted?.stop(5_000);
    expect((await adopted?.exited)?.reason).toContain('the engine ended');
    expect((await engine.exited).reason).toContain('code 0');
  });

  test('another process with the same number is left alone', async () => {
    const engine = await start();
    expect(await driver.adopt({ ...engine.record, processIdentity: 'another boot:1' })).toBeUndefined();
    expect(await probe.generate(targetOf(engine), 5_000)).toMatchObject({ kind: 'answered' });
  });

  test('a process that is the same and hangs is ended', async () => {
    const engine = await start();
    process.kill(engine.pid ?? 0, 'SIGSTOP');
    expect(await driver.adopt(engine.record)).toBeUndefined();
    expect((await engine.exited).reason).toContain('SIGKILL');
  });
});

describe('attaching', () => {
  test('an engine at a URL is asked for its model\'s name, and is never stopped', async () => {
    const engine = await start();
    const vllm = new VllmDriver();
    const attached = await vllm.start(specOf({ modelName: 'my-name', attachedUrl: `${engine.url}/v1/` }));
    expect([attached.url, attached.servedModel, attached.pid]).toEqual([engine.url, 'org/tiny', null]);
    await attached.stop(10);
    expect(await probe.generate({ kind: 'vllm', url: attached.url, servedModel: attached.servedModel }, 5_000)).toMatchObject({ kind: 'answered' });
    expect((await vllm.adopt(attached.record))?.servedModel).toBe('org/tiny');
  });

  test('nothing at the URL is unreachable, with the next step', async () => {
    await expect(new VllmDriver().start(specOf({ attachedUrl: 'http://127.0.0.1:1' }))).rejects.toMatchObject({ code: 'unreachable', message: expect.stringContaining('attach it by its right URL') as unknown as string });
  });
});

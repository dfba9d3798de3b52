import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connectNats, ensureStreams, NatsCommandClient, natsCommandTransport, NatsEventLog, type NatsLink } from '@penstock/infra-nats';
import { FilesystemObjectStore } from '@penstock/infra-objects';
import { createSystemTimers, randomIds, systemClock } from '@penstock/infra-telemetry';
import { silentLogger } from '@penstock/kernel';
import { eventually, MemorySignals, startTestNats, type TestNats } from '@penstock/testing-kit';
import { BatchWorld } from './testing/batch-world.js';

let nats: TestNats;
let link: NatsLink;
let folder: string;

beforeAll(async () => {
  nats = await startTestNats();
  link = await connectNats({ url: nats.url, name: 'penstock/test' });
  await ensureStreams(link);
  folder = await mkdtemp(join(tmpdir(), 'penstock-batch-'));
}, 120_000);

afterAll(async () => {
  await link?.close();
  await nats?.close();
  await rm(folder, { recursive: true, force: true });
});

/** On the real event log, real files, and commands over NATS. */
async function newWorld(): Promise<BatchWorld> {
  return new BatchWorld({
    log: new NatsEventLog(link, { consumerName: 'test' }), objects: await FilesystemObjectStore.open(folder), commands: new NatsCommandClient(link),
    commandTransport: () => natsCommandTransport({ url: nats.url, name: 'penstock/batch', queue: 'batch' }),
    signals: new MemorySignals(), timers: createSystemTimers(silentLogger), ids: randomIds, clock: systemClock, eventually,
  });
}

test('on NATS and real files, both killed in the middle with the worker, every line has one row', async () => {
  const world = await newWorld();
  try {
    await world.gateway.start();
    const first = await world.startWorker({ DRAIN_TIMEOUT_MS: '10' });
    const { id } = await world.createBatchOf(400);
    await eventually(() => world.gateway.seen.length, (count) => count > 120);
    await nats.kill();
    await first.kill();
    await nats.restart();
    await world.startWorker();
    const batch = await world.ended(id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 400, completed: 400, failed: 0 } });
    const rows = await world.rows(batch.output_file_id);
    expect(new Set(rows.map((row) => row.custom_id)).size).toBe(400);
    expect(rows).toHaveLength(400);
    expect(world.gateway.seen.length).toBeLessThanOrEqual(450);
  } finally {
    await world.close();
  }
});

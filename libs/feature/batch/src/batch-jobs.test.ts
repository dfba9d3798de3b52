import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cancelBatch, createBatch, deleteFile, getBatch, getFile, listBatches, listFiles } from '@penstock/contract-commands';
import { createSystemTimers, randomIds, systemClock } from '@penstock/infra-telemetry';
import { silentLogger } from '@penstock/kernel';
import { eventually, LocalCommandClient, localCommandTransport, MemoryEventLog, MemoryObjectStore, MemorySignals } from '@penstock/testing-kit';
import fc from 'fast-check';
import { BatchWorld, linesText, lineText, ORGANISATION } from './testing/batch-world.js';

let world: BatchWorld;

function newWorld(): BatchWorld {
  const commands = new LocalCommandClient();
  return new BatchWorld({
    log: new MemoryEventLog(), objects: new MemoryObjectStore(), commands, commandTransport: () => localCommandTransport(commands), signals: new MemorySignals(),
    timers: createSystemTimers(silentLogger), ids: randomIds, clock: systemClock, eventually,
  });
}

beforeEach(async () => {
  world = newWorld();
  await world.gateway.start();
});

afterEach(() => world.close());

const idsUpTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `r${index + 1}`).sort();

describe('a batch job', () => {
  test('runs every line and ends with its rows in one output file', async () => {
    await world.startWorker();
    const created = await world.createBatchOf(120);
    expect(created).toMatchObject({ object: 'batch', status: 'validating', completion_window: '24h', metadata: { who: 'test' }, request_counts: { total: 0, completed: 0, failed: 0 } });
    const batch = await world.ended(created.id);
    expect(batch).toMatchObject({ status: 'completed', model: 'm', request_counts: { total: 120, completed: 120, failed: 0 }, error_file_id: null });
    const rows = await world.rows(batch.output_file_id);
    expect(rows.map((row) => row.custom_id).sort()).toEqual(idsUpTo(120));
    expect(rows[0]).toMatchObject({ response: { status_code: 200, request_id: `req_${batch.id}_1`, body: { echo: 'r1' } }, error: null });
    expect(new Set(rows.map((row) => row.id)).size).toBe(120);
    expect(world.gateway.runningMax).toBeLessThanOrEqual(4);
    expect(world.gateway.seen[0]?.tenant).toEqual({ organisationId: ORGANISATION, projectId: 'proj_1', keyId: 'key_1', batchId: batch.id });
    const left = await eventually(() => world.objects.list(`batches/${batch.id}/`), (page) => page.objects.length === 1);
    expect(left.objects[0]?.key).toContain('/result/output-');
  });

  test('may be of responses, and keeps its result files for as long as was asked', async () => {
    await world.startWorker();
    const input = await world.uploadText(lineText('r1').replace('/v1/chat/completions', '/v1/responses'));
    const batch = await world.ended((await world.createBatch(input, { endpoint: '/v1/responses', outputExpiresAfterSeconds: 3_600 })).id);
    expect(batch).toMatchObject({ status: 'completed', endpoint: '/v1/responses' });
    const reply = await world.commands.send(getFile, { organisationId: ORGANISATION, fileId: batch.output_file_id ?? '' });
    expect(reply).toMatchObject({ kind: 'ok', value: { file: { purpose: 'batch_output' } } });
    if (reply.kind === 'ok') expect((reply.value.file.expires_at ?? 0) - reply.value.file.created_at).toBe(3_600);
    expect(world.gateway.seen.map(({ path }) => path)).toEqual(['/v1/responses']);
  });

  test('sends each body as the customer wrote it, to the last digit', async () => {
    await world.startWorker();
    const body = '{ "model":"m","custom":"r1", "seed": 12345678901234567890 }';
    const batch = await world.createBatch(await world.uploadText(`{"custom_id":"r1","method":"POST","url":"/v1/chat/completions","body":${body}}`));
    await world.ended(batch.id);
    expect(world.gateway.seen[0]?.bodyText).toBe(body);
  });

  test('puts lines that failed over HTTP into the error file with their answer, and completes', async () => {
    world.gateway.behave = ({ customId }) => (customId === 'r2' ? { status: 400, body: '{"error":{"message":"no"}}' } : { status: 200 });
    await world.startWorker();
    const batch = await world.ended((await world.createBatchOf(3)).id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
    expect((await world.rows(batch.output_file_id)).map((row) => row.custom_id)).toEqual(['r1', 'r3']);
    expect(await world.rows(batch.error_file_id)).toMatchObject([{ custom_id: 'r2', error: null, response: { status_code: 400, body: { error: { message: 'no' } } } }]);
  });

  test('of which every line fails completes without an output file', async () => {
    world.gateway.behave = () => ({ status: 404 });
    await world.startWorker();
    const batch = await world.ended((await world.createBatchOf(2)).id);
    expect(batch).toMatchObject({ status: 'completed', output_file_id: null, request_counts: { total: 2, completed: 0, failed: 2 } });
    expect(await world.rows(batch.error_file_id)).toHaveLength(2);
  });

  test('sends again what may pass, as another request each time, and not what may not', async () => {
    world.gateway.behave = ({ customId, requestId }) => {
      if (customId === 'r1' && !requestId.endsWith('_2')) return { status: requestId.endsWith('_1_1') ? 429 : 503, headers: { 'retry-after-ms': '1' } };
      return customId === 'r2' ? { status: 429, headers: { 'x-should-retry': 'false' } } : { status: 200 };
    };
    await world.startWorker();
    const batch = await world.ended((await world.createBatchOf(2)).id);
    expect(world.gateway.seen.map((line) => line.requestId).sort()).toEqual([`req_${batch.id}_1`, `req_${batch.id}_1_1`, `req_${batch.id}_1_2`, `req_${batch.id}_2`]);
    expect((await world.rows(batch.output_file_id)).map((row) => row.custom_id)).toEqual(['r1']);
    expect(await world.rows(batch.error_file_id)).toMatchObject([{ custom_id: 'r2', response: { status_code: 429 } }]);
  });

  test('waits for a gateway that is away, and loses no line', async () => {
    await world.gateway.stop();
    await world.startWorker();
    const { id } = await world.createBatchOf(5);
    await eventually(() => world.batch(id), (batch) => batch.status === 'in_progress');
    await world.gateway.start();
    expect(await world.ended(id)).toMatchObject({ status: 'completed', request_counts: { total: 5, completed: 5, failed: 0 } });
    expect(world.gateway.seen).toHaveLength(5);
  });

  test('marks a line that is never answered', async () => {
    world.gateway.behave = ({ customId }) => (customId === 'r1' ? 'hang' : { status: 200 });
    await world.startWorker({ BATCH_LINE_TIMEOUT_MS: '1000' });
    const batch = await world.ended((await world.createBatchOf(2)).id);
    expect(await world.rows(batch.error_file_id)).toMatchObject([{ custom_id: 'r1', response: null, error: { code: 'request_timeout' } }]);
  });
});

describe('validation', () => {
  test('fails the job with each fault and its line, and runs nothing', async () => {
    await world.startWorker();
    const text = [lineText('a'), 'nope', lineText('a'), lineText('b', { model: 'other' })].join('\r\n');
    const batch = await world.ended((await world.createBatch(await world.uploadText(text))).id);
    expect(batch).toMatchObject({ status: 'failed', output_file_id: null, errors: { object: 'list' } });
    expect(batch.errors?.data.map((error) => [error.code, error.line])).toEqual([['invalid_json_line', 2], ['duplicate_custom_id', 3], ['model_mismatch', 4]]);
    expect(world.gateway.seen).toEqual([]);
  });

  test.each([
    ['an input that is not there', 'file_none', 'file_not_found: No such File object: file_none'],
    ['a window that is not offered', '', "invalid_value: completion_window must be '24h'."],
  ])('%s is refused at once', async (_name, fileId, message) => {
    await world.startWorker();
    if (fileId !== '') return expect(world.createBatch(fileId)).rejects.toThrow(message);
    const reply = await world.commands.send(createBatch, { organisationId: ORGANISATION, projectId: 'p', keyId: 'k', inputFileId: 'f', endpoint: '/v1/chat/completions', completionWindow: '48h', metadata: null });
    return expect(reply.kind === 'refused' ? `${reply.refusal.code}: ${reply.refusal.message}` : '').toBe(message);
  });
});

describe('the end of a job', () => {
  test('by cancel keeps what is done; the rest says so in the error file, and the counts add up', async () => {
    world.gateway.behave = async (_line, index) => {
      if (index < 60) return { status: 200 };
      await eventually(() => world.batch(id), (batch) => batch.status === 'cancelling');
      return { status: 200 };
    };
    await world.startWorker();
    const { id } = await world.createBatchOf(200);
    await eventually(() => world.gateway.seen.length, (count) => count > 60);
    expect(await world.commands.send(cancelBatch, { organisationId: ORGANISATION, batchId: id })).toMatchObject({ kind: 'ok', value: { status: 'cancelling' } });
    const batch = await world.ended(id);
    expect(batch.status).toBe('cancelled');
    const done = await world.rows(batch.output_file_id);
    const notDone = await world.rows(batch.error_file_id);
    expect(done.map((row) => row.custom_id).sort()).toEqual([...world.gateway.answered].sort());
    expect(new Set(notDone.map((row) => row.error?.code))).toEqual(new Set(['batch_cancelled']));
    expect([...done, ...notDone].map((row) => row.custom_id).sort()).toEqual(idsUpTo(200));
    expect(batch.request_counts).toEqual({ total: 200, completed: done.length, failed: notDone.length });
    expect(await world.commands.send(cancelBatch, { organisationId: ORGANISATION, batchId: id })).toMatchObject({ kind: 'refused', refusal: { code: 'invalid_value' } });
  });

  test('by expiry likewise, even when it comes while no service runs', async () => {
    world.gateway.behave = (_line, index) => (index < 60 ? { status: 200 } : 'hang');
    const worker = await world.startWorker({ DRAIN_TIMEOUT_MS: '10' });
    const { id } = await world.createBatchOf(120);
    await eventually(() => world.gateway.seen.length, (count) => count >= 64);
    await worker.kill();
    world.clockOffsetMs = 25 * 3_600_000;
    await world.startWorker();
    const batch = await world.ended(id);
    expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 120, completed: 50, failed: 70 } });
    expect(await world.rows(batch.output_file_id)).toHaveLength(50);
    expect(new Set((await world.rows(batch.error_file_id)).map((row) => row.error?.code))).toEqual(new Set(['batch_expired']));
  });
});

describe('workers', () => {
  test('a stop in the middle keeps the answers that came; the next start runs the others only', async () => {
    const worker = await world.startWorker();
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    world.gateway.behave = async (_line, index) => {
      if (index >= 20) await gate;
      return { status: 200 };
    };
    const { id } = await world.createBatchOf(50);
    await eventually(() => world.gateway.seen.length, (count) => count === 24);
    const closing = worker.service.close();
    go();
    await closing;
    expect(world.gateway.seen).toHaveLength(24);
    await world.startWorker();
    await world.ended(id);
    expect(world.gateway.seen).toHaveLength(50);
  });

  test('a job of a worker that is gone is taken over, and lines keep their request ids', async () => {
    world.gateway.behave = (_line, index) => (index < 10 ? { status: 200 } : 'hang');
    await world.startWorker();
    // Of two the newest gets the command, and so the job.
    const owner = await world.startWorker({ DRAIN_TIMEOUT_MS: '10' });
    const { id } = await world.createBatchOf(30);
    await eventually(() => world.gateway.seen.length, (count) => count >= 14);
    await owner.kill();
    world.gateway.behave = () => ({ status: 200 });
    world.clockOffsetMs = 61_000;
    const batch = await world.ended(id);
    expect(batch.request_counts).toEqual({ total: 30, completed: 30, failed: 0 });
    expect(new Set(world.gateway.seen.map((line) => line.requestId)).size).toBe(30);
  });

  test('exactly one row for each line, whoever is killed when', async () => {
    const plan = fc.record({ lines: fc.integer({ min: 1, max: 180 }), kills: fc.array(fc.integer({ min: 0, max: 120 }), { maxLength: 4 }), workers: fc.integer({ min: 1, max: 2 }), badEvery: fc.integer({ min: 3, max: 9 }) });
    await fc.assert(fc.asyncProperty(plan, async ({ lines, kills, workers, badEvery }) => {
      const run = newWorld();
      try {
        await run.gateway.start();
        run.gateway.behave = ({ customId }, index) => (index % badEvery === 0 ? { status: 503, headers: { 'retry-after-ms': '1' } } : { status: customId.endsWith('7') ? 422 : 200 });
        const alive = await Promise.all(Array.from({ length: workers }, () => run.startWorker({ DRAIN_TIMEOUT_MS: '10' })));
        const { id } = await run.createBatchOf(lines);
        for (const count of kills) {
          const target = run.gateway.seen.length + count;
          await eventually(async () => run.gateway.seen.length >= target || (await run.batch(id)).status === 'completed', Boolean);
          await alive.shift()?.kill();
          alive.push(await run.startWorker({ DRAIN_TIMEOUT_MS: '10' }));
        }
        const batch = await run.ended(id, 2_000);
        const rows = [...(await run.rows(batch.output_file_id)), ...(await run.rows(batch.error_file_id))];
        expect(rows.map((row) => row.custom_id).sort()).toEqual(idsUpTo(lines));
        expect(batch.request_counts).toEqual({ total: lines, completed: (await run.rows(batch.output_file_id)).length, failed: (await run.rows(batch.error_file_id)).length });
        const files = await run.commands.send(listFiles, { organisationId: ORGANISATION, purpose: 'batch_output' });
        expect(files.kind === 'ok' ? files.value.files.map((file) => file.id).sort() : files).toEqual([batch.output_file_id, batch.error_file_id].filter((file) => file !== null).sort());
      } finally {
        await run.close();
      }
    }), { numRuns: 12 });
  });
});

describe('files and lists', () => {
  test('a file in use stays; afterwards it can be deleted with its bytes', async () => {
    world.gateway.behave = () => 'hang';
    await world.startWorker({ DRAIN_TIMEOUT_MS: '10' });
    const fileId = await world.uploadText(linesText(1));
    const { id } = await world.createBatch(fileId);
    await eventually(() => world.gateway.seen.length, (count) => count === 1);
    const remove = () => world.commands.send(deleteFile, { organisationId: ORGANISATION, fileId });
    expect(await remove()).toMatchObject({ kind: 'refused', refusal: { code: 'conflict' } });
    world.gateway.behave = () => ({ status: 200 });
    await world.gateway.stop();
    await world.gateway.start();
    await world.ended(id);
    expect(await eventually(remove, (reply) => reply.kind === 'ok')).toMatchObject({ value: { fileId } });
    expect(await world.objects.head(`files/${ORGANISATION}/${fileId}`)).toBeUndefined();
    expect(await world.commands.send(getFile, { organisationId: ORGANISATION, fileId })).toMatchObject({ kind: 'refused', refusal: { code: 'file_not_found' } });
  });

  test('are told from memory while the database is away, paged, and to their organisation only', async () => {
    const away = () => Promise.reject(new Error('connection refused'));
    await world.startWorker({}, { queries: { file: away, files: away, batch: away, batches: away } });
    const fileIds = [await world.uploadText('x'), await world.uploadText('y'), await world.uploadText(linesText(1))];
    const batch = await world.ended((await world.createBatch(fileIds[2] ?? '')).id);
    const all = await world.commands.send(listFiles, { organisationId: ORGANISATION, order: 'asc', purpose: 'batch' });
    expect(all.kind === 'ok' ? all.value.files.map((file) => file.id) : all).toEqual(fileIds);
    const page = await world.commands.send(listFiles, { organisationId: ORGANISATION, order: 'asc', purpose: 'batch', after: fileIds[0], limit: 1 });
    expect(page).toMatchObject({ value: { files: [{ id: fileIds[1] }], hasMore: true } });
    expect(await world.commands.send(listBatches, { organisationId: ORGANISATION })).toMatchObject({ value: { batches: [{ id: batch.id }], hasMore: false } });
    expect(await world.commands.send(listBatches, { organisationId: 'org_2' })).toMatchObject({ value: { batches: [] } });
    expect(await world.commands.send(getBatch, { organisationId: 'org_2', batchId: batch.id })).toMatchObject({ kind: 'refused', refusal: { code: 'batch_not_found' } });
    expect(await world.commands.send(getFile, { organisationId: 'org_2', fileId: batch.output_file_id ?? '' })).toMatchObject({ kind: 'refused', refusal: { code: 'file_not_found' } });
  });
});

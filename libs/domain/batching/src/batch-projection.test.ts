import { describe, expect, test } from '@jest/globals';
import { batchJobCreatedV2, fileUploadedV1 } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import fc from 'fast-check';
import { batchProjection, ENDED_JOBS_IN_MEMORY_MAX, type BatchState } from './batch-projection.js';

const created = batchJobCreatedV2.schema.parse(batchJobCreatedV2.example);
const uploaded = fileUploadedV1.schema.parse(fileUploadedV1.example);

function recorded(type: string, data: unknown, sequence: number): RecordedEvent {
  return {
    id: `e${sequence}`, type, data, sequence, source: 'penstock/batch', time: '2026-11-29T12:00:00.000Z', stream: 'EV_BATCH',
    ref: { context: 'batch', aggregate: 'any', id: 'any' }, correlationId: 'c', causationId: 'c',
  };
}

const fold = (events: readonly RecordedEvent[], state: BatchState = batchProjection.initialState()): BatchState => events.reduce((current, event) => batchProjection.apply(current, event), state);
const viaSnapshot = (state: BatchState): BatchState => batchProjection.restore(JSON.parse(JSON.stringify(batchProjection.snapshot(state))));

describe('the batch projection', () => {
  test('goes on from a snapshot at any point to the same state', () => {
    const event = fc.oneof(
      fc.nat({ max: 3 }).map((n) => ['batch-job.created.v2', { ...created, batchId: `batch_${n}` }] as const),
      fc.nat({ max: 3 }).map((n) => ['batch-job.started.v1', { batchId: `batch_${n}`, total: 2, modelName: 'm' }] as const),
      fc.record({ n: fc.nat({ max: 3 }), chunk: fc.nat({ max: 2 }) }).map(({ n, chunk }) => ['batch-job.chunk-completed.v1', { batchId: `batch_${n}`, chunk, completed: 1, failed: 0, outputKey: 'o', errorKey: null }] as const),
      fc.nat({ max: 3 }).map((n) => ['batch-job.finished.v1', { batchId: `batch_${n}`, status: 'completed', completed: 1, failed: 0, outputFileId: null, errorFileId: null }] as const),
      fc.nat({ max: 3 }).map((n) => ['file.uploaded.v1', { ...uploaded, fileId: `file_${n}` }] as const),
      fc.nat({ max: 3 }).map((n) => ['file.deleted.v1', { fileId: `file_${n}`, reason: 'owner' }] as const),
    );
    fc.assert(fc.property(fc.array(event, { maxLength: 40 }), fc.nat({ max: 40 }), (list, cut) => {
      const events = list.map(([type, data], index) => recorded(type, data, index + 1));
      expect(fold(events.slice(cut), viaSnapshot(fold(events.slice(0, cut))))).toEqual(fold(events));
    }));
  });

  test('keeps a bounded number of ended jobs, and every unfinished one', () => {
    const state = fold([recorded('batch-job.created.v2', { ...created, batchId: 'batch_open' }, 1)]);
    for (let index = 0; index < ENDED_JOBS_IN_MEMORY_MAX + 5; index += 1) {
      const batchId = `batch_${index}`;
      fold([
        recorded('batch-job.created.v2', { ...created, batchId }, 2 * index + 2),
        recorded('batch-job.failed.v1', { batchId, errors: [{ code: 'empty_file', message: 'Empty.', param: null, line: null }] }, 2 * index + 3),
      ], state);
    }
    expect(state.jobs.size).toBe(ENDED_JOBS_IN_MEMORY_MAX);
    expect(state.jobs.has('batch_open')).toBe(true);
    expect(state.jobs.has('batch_0')).toBe(false);
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { batchJobCreatedV2 } from '@penstock/contract-events';
import { batchJobDecider, type BatchJobCommand } from './batch-job-decider.js';
import type { BatchJobEvent } from './batch-job-events.js';
import { isUnfinished, type BatchJobState } from './batch-job.js';
import { toBatchObject } from './batch-object.js';

const T0 = Date.parse('2026-11-29T12:00:00.000Z');
const created = { ...batchJobCreatedV2.schema.parse(batchJobCreatedV2.example), batchId: 'batch_01' };
const create: BatchJobCommand = { kind: 'create', nowMs: T0, data: created };
const start: BatchJobCommand = { kind: 'start', nowMs: T0 + 1_000, data: { batchId: 'batch_01', total: 100, modelName: 'm' } };
const cancel: BatchJobCommand = { kind: 'request-cancel', nowMs: T0 + 2_000, batchId: 'batch_01', organisationId: 'org_01' };
const chunk = (number: number, completed = 49, failed = 1): BatchJobCommand => ({
  kind: 'complete-chunk', nowMs: T0 + 3_000, data: { batchId: 'batch_01', chunk: number, completed, failed, outputKey: `o/${number}`, errorKey: null },
});
const finish = (status: 'completed' | 'cancelled' | 'expired', chunksSeen = 0): BatchJobCommand => ({
  kind: 'finish', nowMs: T0 + 4_000, chunksSeen, data: { batchId: 'batch_01', status, completed: 98, failed: 2, outputFileId: 'file_o', errorFileId: null },
});

function run(commands: readonly BatchJobCommand[]): { state: BatchJobState | null; events: BatchJobEvent[]; refusals: string[] } {
  let state: BatchJobState | null = batchJobDecider.initialState;
  const events: BatchJobEvent[] = [];
  const refusals: string[] = [];
  for (const command of commands) {
    const decision = batchJobDecider.decide(command, state);
    if (decision.kind === 'refused') refusals.push(decision.refusal.code);
    else for (const event of decision.events) {
      events.push(event);
      state = batchJobDecider.evolve(state, event);
    }
  }
  return { state, events, refusals };
}

const typesOf = (commands: readonly BatchJobCommand[]) => run(commands).events.map((event) => event.type);
function objectOf(commands: readonly BatchJobCommand[]) {
  const { state } = run(commands);
  if (state === null) throw new Error('no job');
  return toBatchObject(state);
}

describe('batch job', () => {
  test('goes from validating to completed, with the time of each step', () => {
    expect(objectOf([create])).toMatchObject({ id: 'batch_01', status: 'validating', created_at: T0 / 1_000, model: null, completion_window: '24h', request_counts: { total: 0, completed: 0, failed: 0 } });
    expect(objectOf([create, start])).toMatchObject({ status: 'in_progress', in_progress_at: T0 / 1_000 + 1, finalizing_at: null, model: 'm' });
    expect(objectOf([create, start, chunk(0), chunk(1)])).toMatchObject({ status: 'finalizing', finalizing_at: T0 / 1_000 + 3, request_counts: { total: 100, completed: 98, failed: 2 } });
    expect(objectOf([create, start, chunk(0), chunk(1), finish('completed', 2)])).toMatchObject({ status: 'completed', completed_at: T0 / 1_000 + 4, output_file_id: 'file_o', error_file_id: null, cancelled_at: null, expired_at: null });
  });

  test('takes each step once: the second worker changes nothing', () => {
    expect(typesOf([create, create, start, start, chunk(0), chunk(0, 1, 49), finish('completed', 0), finish('completed', 1), finish('expired', 1), chunk(1)])).toEqual([
      'batch-job.created.v2', 'batch-job.started.v1', 'batch-job.chunk-completed.v1', 'batch-job.finished.v1',
    ]);
  });

  test('a cancelled job does not start, and ends as cancelled', () => {
    expect(objectOf([create, cancel])).toMatchObject({ status: 'cancelling', cancelling_at: T0 / 1_000 + 2 });
    expect(typesOf([create, cancel, cancel, start, finish('cancelled')])).toEqual(['batch-job.created.v2', 'batch-job.cancel-requested.v1', 'batch-job.finished.v1']);
    expect(objectOf([create, cancel, finish('cancelled')])).toMatchObject({ status: 'cancelled', cancelled_at: T0 / 1_000 + 4, completed_at: null });
  });

  test('refuses to cancel what is not there, what belongs to another organisation and what ended', () => {
    expect(run([cancel]).refusals).toEqual(['batch_not_found']);
    expect(run([create, { ...cancel, organisationId: 'org_02' } as BatchJobCommand]).refusals).toEqual(['batch_not_found']);
    expect(run([create, start, finish('completed'), cancel]).refusals).toEqual(['invalid_value']);
  });

  test('an invalid input fails the job with its faults', () => {
    const fail: BatchJobCommand = { kind: 'fail', nowMs: T0 + 500, data: { batchId: 'batch_01', errors: [{ code: 'invalid_json_line', message: 'Line 3', param: null, line: 3 }] } };
    expect(objectOf([create, fail])).toMatchObject({ status: 'failed', failed_at: T0 / 1_000, errors: { object: 'list', data: [{ line: 3 }] } });
    expect(typesOf([create, fail, start, chunk(0)])).toEqual(['batch-job.created.v2', 'batch-job.failed.v1']);
  });

  test('whatever is tried in whatever order: one end, every chunk at most once, and nothing after the end', () => {
    const commands = fc.array(fc.oneof(
      fc.constantFrom(create, start, cancel, finish('completed'), finish('cancelled', 1), finish('expired', 2)),
      fc.nat({ max: 4 }).map((number) => chunk(number)),
    ), { maxLength: 30 });
    fc.assert(fc.property(commands, (tried) => {
      const { events, state } = run([create, ...tried]);
      const ends = events.filter((event) => event.type === 'batch-job.finished.v1');
      expect(ends.length).toBeLessThanOrEqual(1);
      if (ends.length === 1) expect(events.at(-1)).toBe(ends[0]);
      expect(state !== null && isUnfinished(state)).toBe(ends.length === 0);
      const chunks = events.flatMap((event) => (event.type === 'batch-job.chunk-completed.v1' ? [event.data.chunk] : []));
      expect(new Set(chunks).size).toBe(chunks.length);
    }));
  });
});

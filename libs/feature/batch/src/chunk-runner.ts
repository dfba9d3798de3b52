import {
  isSuccess, LINE_BYTES_MAX, outputRow, parseInputLine, splitLines, type BatchJobState, type InputLine, type LineOutcome, type ObjectStore, type PlannedChunk,
} from '@penstock/domain-batching';
import type { Clock } from '@penstock/kernel';
import type { JobObjects } from './job-objects.js';
import type { EndReason, LineRunner } from './line-runner.js';
import type { LineSlots } from './line-slots.js';

/** Answers of an unfinished chunk are saved at most this often. */
const PARTIAL_INTERVAL_MS = 1_000;

export interface ChunkTask {
  readonly job: BatchJobState;
  readonly inputKey: string;
  readonly chunk: PlannedChunk;
  readonly endReason: () => EndReason | undefined;
  /** True once no further line may begin here: the service drains, or another worker has the chunk. */
  readonly isGivenUp: () => boolean;
  readonly signal: AbortSignal;
}

/** Result of a chunk, stored under keys of this worker; nothing counts until it is in the event log. */
export interface ChunkResult {
  readonly completed: number;
  readonly failed: number;
  readonly outputKey: string | null;
  readonly errorKey: string | null;
}

interface NumberedLine extends InputLine {
  readonly number: number;
}

export interface ChunkRunnerOptions {
  readonly store: ObjectStore;
  readonly objects: JobObjects;
  readonly lines: LineRunner;
  readonly slots: LineSlots;
  readonly clock: Clock;
}

/** Runs the lines of one chunk that have no saved answer, and stores the rows of all of them. */
export class ChunkRunner {
  private savedAtMs = 0;
  private saving: Promise<void> | undefined;

  constructor(private readonly options: ChunkRunnerOptions) {}

  /** Throws what the lines throw, such as a `LineGivenUpError` or the reason of the abort, once nothing runs any more; the answers so far are saved. */
  async run(task: ChunkTask): Promise<ChunkResult> {
    const lines = await readChunk(this.options.store, task.inputKey, task.chunk);
    const outcomes = await this.options.objects.readPartial(task.chunk.chunk);
    this.savedAtMs = this.options.clock.now();
    const open = lines.filter((line) => !outcomes.has(line.number));
    const results = await Promise.allSettled(open.map((line) => this.options.slots.with(() => this.runLine(task, line, outcomes))));
    await this.saving;
    // Saved before anything else can fail, so that no line runs again when the result cannot be recorded.
    if (open.length > 0) await this.options.objects.writePartial(task.chunk.chunk, outcomes);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    return this.store(task, lines, outcomes);
  }

  private async runLine(task: ChunkTask, line: NumberedLine, outcomes: Map<number, LineOutcome>): Promise<void> {
    const { job, endReason, isGivenUp, signal } = task;
    outcomes.set(line.number, await this.options.lines.run({ job, lineNumber: line.number, bodyText: line.bodyText, endReason, isGivenUp, signal }));
    if (this.saving === undefined && this.options.clock.now() - this.savedAtMs >= PARTIAL_INTERVAL_MS) {
      // A save that fails costs at most a line that is run again.
      this.saving = this.options.objects.writePartial(task.chunk.chunk, outcomes).catch(() => undefined).finally(() => {
        this.savedAtMs = this.options.clock.now();
        this.saving = undefined;
      });
    }
  }

  private async store(task: ChunkTask, lines: readonly NumberedLine[], outcomes: ReadonlyMap<number, LineOutcome>): Promise<ChunkResult> {
    const rows = { output: '', error: '' };
    let completed = 0;
    for (const line of lines) {
      const outcome = outcomes.get(line.number);
      if (outcome === undefined) throw new Error(`Line ${line.number} of ${task.job.batchId} has no outcome`);
      const isCompleted = isSuccess(outcome);
      completed += isCompleted ? 1 : 0;
      rows[isCompleted ? 'output' : 'error'] += outputRow(task.job.batchId, line.number, line.customId, outcome);
    }
    const outputKey = await this.options.objects.writeRows('output', task.chunk.chunk, rows.output);
    const errorKey = await this.options.objects.writeRows('error', task.chunk.chunk, rows.error);
    return { completed, failed: lines.length - completed, outputKey, errorKey };
  }
}

/** The requests of one chunk. Throws when the input is not what was validated. */
export async function readChunk(store: ObjectStore, inputKey: string, chunk: PlannedChunk): Promise<NumberedLine[]> {
  const reading = await store.get(inputKey, { offset: chunk.byteStart, length: chunk.byteEnd - chunk.byteStart });
  if (reading === undefined) throw new Error(`The input ${inputKey} is not in the object store`);
  const lines: NumberedLine[] = [];
  for await (const line of splitLines(reading.body, { lineNumber: chunk.firstLine, byteOffset: chunk.byteStart })) {
    const parsed = parseInputLine(line.bytes, line.number, LINE_BYTES_MAX);
    if (parsed.kind === 'fault') throw new Error(`The input ${inputKey} changed after it was validated, at line ${line.number}`);
    if (parsed.kind === 'line') lines.push({ ...parsed.line, number: line.number });
  }
  if (lines.length !== chunk.requests) throw new Error(`Chunk ${chunk.chunk} of ${inputKey} has ${lines.length} requests, not ${chunk.requests}`);
  return lines;
}

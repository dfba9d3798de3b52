import {
  batchJobDecider, batchJobRef, fileDecider, fileRef, isChunkCompleted, isExpired, isUnfinished, validateInput,
  type BatchJobCommand, type BatchJobState, type BatchState, type ChunkPlan, type PlannedChunk,
} from '@penstock/domain-batching';
import { handleCommand, type LiveProjection } from '@penstock/kernel';
import type { BatchMetrics } from './batch-metrics.js';
import type { BatchPorts } from './batch-ports.js';
import { ChunkRunner, type ChunkResult } from './chunk-runner.js';
import { JobObjects } from './job-objects.js';
import { LineGivenUpError, notRun, type EndReason, type LineRunner } from './line-runner.js';
import type { LineSlots } from './line-slots.js';
import { loadState } from './load-state.js';
import { metadataOf } from './metadata-of.js';
import { ResultAssembler, type ResultFiles, type Unfinished } from './result-files.js';

export interface JobRunnerOptions {
  readonly ports: BatchPorts;
  readonly live: LiveProjection<BatchState>;
  readonly lines: LineRunner;
  readonly slots: LineSlots;
  readonly metrics: BatchMetrics;
  /** Differs between processes and between starts of one process. */
  readonly workerId: string;
  readonly isDraining: () => boolean;
  readonly signal: AbortSignal;
}

/** `yielded`: another worker is at this job. `stopped`: the service drains; the job goes on after the next start. */
export type JobRunEnd = 'ended' | 'yielded' | 'stopped';

/** A finish is made again when another worker completed a chunk meanwhile; more often than this it waits for the next run. */
const FINISH_ATTEMPTS_MAX = 5;

/** Takes one job from where it stands to its end. Every step is decided by the event log, so any number of workers may try. */
export class JobRunner {
  private readonly objects: JobObjects;
  private readonly chunks: ChunkRunner;
  private readonly assembler: ResultAssembler;

  constructor(private readonly batchId: string, private readonly options: JobRunnerOptions) {
    const { ports, lines, slots, workerId } = options;
    this.objects = new JobObjects(ports.objects, batchId, workerId);
    this.chunks = new ChunkRunner({ store: ports.objects, objects: this.objects, lines, slots, clock: ports.clock });
    this.assembler = new ResultAssembler(ports, this.objects);
  }

  async run(): Promise<JobRunEnd> {
    let job = await loadState(this.options.ports.log, batchJobDecider, batchJobRef(this.batchId));
    if (job?.phase === 'validating') job = this.endReasonOf(job) === undefined ? await this.validate(job) : await this.finishUnstarted(job);
    if (job === null || job.phase !== 'running') return 'ended';
    const plan = await this.objects.readPlan();
    const inputKey = await this.inputKeyOf(job);
    if (inputKey === undefined) throw new Error(`The input file ${job.inputFileId} of ${job.batchId} was deleted while the job runs`);
    for (const chunk of plan.chunks) {
      if (isChunkCompleted(job, chunk.chunk)) continue;
      // Answers that a worker saved before the end was asked for are kept: they were paid for.
      if (this.endReasonOf(job) !== undefined && (await this.objects.readPartial(chunk.chunk)).size === 0) break;
      if (this.options.isDraining()) return 'stopped';
      const next = await this.runChunk(job, inputKey, chunk);
      if (next === 'yielded' || next === 'stopped') return next;
      job = next;
    }
    await this.finish(job, plan, inputKey);
    return 'ended';
  }

  private async validate(job: BatchJobState): Promise<BatchJobState | null> {
    const { objects } = this.options.ports;
    const inputKey = await this.inputKeyOf(job);
    const reading = inputKey === undefined ? undefined : await objects.get(inputKey);
    if (reading === undefined) {
      return this.decide({ kind: 'fail', nowMs: this.now(), data: { batchId: job.batchId, errors: [{ code: 'file_not_found', message: 'The input file is not there any more; upload it again.', param: 'input_file_id', line: null }] } });
    }
    const input = await validateInput(reading.body, job.endpoint);
    if (input.kind === 'invalid') return this.decide({ kind: 'fail', nowMs: this.now(), data: { batchId: job.batchId, errors: [...input.faults] } });
    await this.objects.writePlan(input.plan);
    return this.decide({ kind: 'start', nowMs: this.now(), data: { batchId: job.batchId, total: input.plan.total, modelName: input.plan.modelName } });
  }

  private async runChunk(job: BatchJobState, inputKey: string, chunk: PlannedChunk): Promise<BatchJobState | 'yielded' | 'stopped'> {
    const { isDraining, signal } = this.options;
    const isTaken = (): boolean => this.isTakenByOther(chunk.chunk);
    let result: ChunkResult;
    try {
      result = await this.chunks.run({ job, inputKey, chunk, endReason: () => this.endReasonOf(job), isGivenUp: () => isDraining() || isTaken(), signal });
    } catch (error) {
      if (signal.aborted || isDraining()) return 'stopped';
      if (error instanceof LineGivenUpError) return 'yielded';
      throw error;
    }
    const data = { batchId: job.batchId, chunk: chunk.chunk, ...result };
    const next = await this.decide({ kind: 'complete-chunk', nowMs: this.now(), data });
    const recorded = next?.chunks[String(chunk.chunk)];
    if (next !== null && recorded !== undefined && this.objects.isOwn(recorded.outputKey ?? recorded.errorKey)) {
      await this.objects.removePartial(chunk.chunk).catch(() => undefined);
      return next;
    }
    this.options.metrics.chunksDiscarded.inc();
    for (const key of [result.outputKey, result.errorKey]) if (key !== null) await this.options.ports.objects.delete(key);
    return 'yielded';
  }

  private async finish(start: BatchJobState, plan: ChunkPlan, inputKey: string): Promise<void> {
    let job = start;
    for (let attempt = 0; attempt < FINISH_ATTEMPTS_MAX; attempt += 1) {
      const isAllDone = plan.chunks.every((chunk) => isChunkCompleted(job, chunk.chunk));
      const reason = this.endReasonOf(job);
      const status = isAllDone && reason !== 'cancelled' ? ('completed' as const) : reason;
      if (status === undefined) return;
      const unfinished: Unfinished | undefined = isAllDone || reason === undefined ? undefined : { plan, inputKey, outcome: notRun(reason) };
      const files = await this.assembler.assemble(job, unfinished);
      const data = {
        batchId: job.batchId, status, completed: job.completed, failed: plan.total - job.completed,
        outputFileId: files.output?.fileId ?? null, errorFileId: files.error?.fileId ?? null,
      };
      const next = await this.decide({ kind: 'finish', nowMs: this.now(), data, chunksSeen: Object.keys(job.chunks).length });
      if (next === null || !isUnfinished(next)) return this.cleanUp(next ?? job, files);
      await this.assembler.discard(next, files);
      job = next;
    }
  }

  private async cleanUp(job: BatchJobState, files: ResultFiles): Promise<void> {
    try {
      await this.assembler.discard(job, files);
      await this.objects.removeWorkingSet();
    } catch (error) {
      // The job has ended; what is left over takes room and harms nobody.
      this.options.ports.logger.warn({ err: error, batchId: job.batchId }, 'working objects of a finished batch job are left over');
    }
  }

  /** A job that never started has no rows. */
  private finishUnstarted(job: BatchJobState): Promise<BatchJobState | null> {
    const status = this.endReasonOf(job) === 'cancelled' ? 'cancelled' : 'expired';
    return this.decide({ kind: 'finish', nowMs: this.now(), chunksSeen: 0, data: { batchId: job.batchId, status, completed: 0, failed: 0, outputFileId: null, errorFileId: null } });
  }

  private endReasonOf(job: BatchJobState): EndReason | undefined {
    const newest = this.options.live.state().jobs.get(this.batchId);
    if (job.cancelRequestedAt !== null || (newest?.cancelRequestedAt ?? null) !== null) return 'cancelled';
    return isExpired(job, this.now()) ? 'expired' : undefined;
  }

  private isTakenByOther(chunk: number): boolean {
    const newest = this.options.live.state().jobs.get(this.batchId);
    return newest !== undefined && (!isUnfinished(newest) || isChunkCompleted(newest, chunk));
  }

  private async inputKeyOf(job: BatchJobState): Promise<string | undefined> {
    const file = await loadState(this.options.ports.log, fileDecider, fileRef(job.inputFileId));
    return file === null || file.isDeleted ? undefined : file.objectKey;
  }

  private async decide(command: BatchJobCommand): Promise<BatchJobState | null> {
    const { ports } = this.options;
    const outcome = await handleCommand(ports.log, batchJobDecider, batchJobRef(this.batchId), command, metadataOf(ports, this.batchId));
    if (outcome.kind === 'refused') throw new Error(`A step of ${this.batchId} was refused: ${outcome.refusal.message}`);
    return outcome.state;
  }

  private now(): number {
    return this.options.ports.clock.now();
  }
}

import { createHash } from 'node:crypto';
import {
  completedChunks, fileDecider, fileRef, isChunkCompleted, outputRow, type BatchJobState, type ChunkPlan, type LineOutcome, type ObjectStore,
} from '@penstock/domain-batching';
import { handleCommand } from '@penstock/kernel';
import type { BatchPorts } from './batch-ports.js';
import { readChunk } from './chunk-runner.js';
import type { JobObjects } from './job-objects.js';
import { metadataOf } from './metadata-of.js';

type Kind = 'output' | 'error';

/** A file that was put together and registered; `objectKey` is where this worker wrote it. */
interface ResultFile {
  readonly fileId: string;
  readonly objectKey: string;
}

export interface ResultFiles {
  readonly output: ResultFile | null;
  readonly error: ResultFile | null;
}

/** What a job is finished with when not all of its lines were run. */
export interface Unfinished {
  readonly plan: ChunkPlan;
  readonly inputKey: string;
  readonly outcome: LineOutcome;
}

/** Puts the output and error file of a job together out of its chunks, streamed, and registers them as files. */
export class ResultAssembler {
  constructor(private readonly ports: Pick<BatchPorts, 'objects' | 'log' | 'ids' | 'clock'>, private readonly objects: JobObjects) {}

  /** `unfinished` tells how to fill the rows of lines that were not run; left out when every line was. */
  async assemble(job: BatchJobState, unfinished: Unfinished | undefined): Promise<ResultFiles> {
    const output = await this.assembleOne(job, 'output', this.outputParts(job));
    const error = await this.assembleOne(job, 'error', this.errorParts(job, unfinished));
    return { output, error };
  }

  /** Removes files that were made for nothing because another worker finished the job with other ones. */
  async discard(job: BatchJobState, files: ResultFiles): Promise<void> {
    for (const kind of ['output', 'error'] as const) {
      const file = files[kind];
      const kept = kind === 'output' ? job.finished?.outputFileId : job.finished?.errorFileId;
      if (file === null || file.fileId === kept) continue;
      const command = { kind: 'delete', nowMs: this.ports.clock.now(), fileId: file.fileId, organisationId: job.organisationId, reason: 'owner' } as const;
      await handleCommand(this.ports.log, fileDecider, fileRef(file.fileId), command, metadataOf(this.ports, job.batchId));
      await this.ports.objects.delete(file.objectKey);
    }
  }

  private async assembleOne(job: BatchJobState, kind: Kind, parts: AsyncIterable<Uint8Array>): Promise<ResultFile | null> {
    const objectKey = this.objects.resultKey(kind);
    const hash = createHash('sha256');
    let bytes = 0;
    async function* measured(): AsyncGenerator<Uint8Array> {
      for await (const part of parts) {
        hash.update(part);
        bytes += part.length;
        yield part;
      }
    }
    await this.ports.objects.put(objectKey, measured());
    if (bytes === 0) {
      await this.ports.objects.delete(objectKey);
      return null;
    }
    const digest = hash.digest('hex');
    const fileId = resultFileId(job.batchId, kind, digest);
    await this.register(job, kind, { fileId, objectKey, bytes, digest: `sha256:${digest}` });
    return { fileId, objectKey };
  }

  private async register(job: BatchJobState, kind: Kind, file: { fileId: string; objectKey: string; bytes: number; digest: string }): Promise<void> {
    const nowMs = this.ports.clock.now();
    const data = {
      ...file, organisationId: job.organisationId, projectId: job.projectId, filename: `${job.batchId}_${kind}.jsonl`, purpose: 'batch_output' as const,
      expiresAt: job.outputExpiresAfterSeconds === undefined ? null : new Date(nowMs + job.outputExpiresAfterSeconds * 1_000).toISOString(),
    };
    const outcome = await handleCommand(this.ports.log, fileDecider, fileRef(file.fileId), { kind: 'register', nowMs, data }, metadataOf(this.ports, job.batchId));
    if (outcome.kind === 'refused') throw new Error(`The ${kind} file of ${job.batchId} cannot be registered: ${outcome.refusal.message}`);
    // The same bytes were registered before, by another worker or before a crash: that copy stays.
    if (outcome.state !== null && outcome.state.objectKey !== file.objectKey) await this.ports.objects.delete(file.objectKey);
  }

  private async *outputParts(job: BatchJobState): AsyncGenerator<Uint8Array> {
    for (const chunk of completedChunks(job)) yield* readObject(this.ports.objects, chunk.outputKey);
  }

  private async *errorParts(job: BatchJobState, unfinished: Unfinished | undefined): AsyncGenerator<Uint8Array> {
    for (const chunk of completedChunks(job)) yield* readObject(this.ports.objects, chunk.errorKey);
    if (unfinished === undefined) return;
    const encoder = new TextEncoder();
    for (const chunk of unfinished.plan.chunks) {
      if (isChunkCompleted(job, chunk.chunk)) continue;
      const lines = await readChunk(this.ports.objects, unfinished.inputKey, chunk);
      yield encoder.encode(lines.map((line) => outputRow(job.batchId, line.number, line.customId, unfinished.outcome)).join(''));
    }
  }
}

/** The same for the same bytes, so that workers that end a job together register one file. */
function resultFileId(batchId: string, kind: Kind, digest: string): string {
  return `file_${createHash('sha256').update(`${batchId} ${kind} ${digest}`).digest('hex').slice(0, 32)}`;
}

async function* readObject(store: ObjectStore, key: string | null): AsyncGenerator<Uint8Array> {
  if (key === null) return;
  const reading = await store.get(key);
  if (reading === undefined) throw new Error(`The object ${key} is missing`);
  yield* reading.body;
}

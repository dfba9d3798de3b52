import { fileDecider, fileRef, isExpired, isUnfinished, type BatchJobState, type BatchState } from '@penstock/domain-batching';
import { ReconcileLoop } from '@penstock/feature-shell';
import { handleCommand, type LiveProjection, type Logger } from '@penstock/kernel';
import type { BatchPorts } from './batch-ports.js';
import type { JobRunEnd } from './job-runner.js';
import { metadataOf } from './metadata-of.js';

/** Jobs that one process works on at once; their lines share one limit. Jobs that only have to be ended are not counted. */
export const JOBS_RUNNING_MAX = 16;

/** A job that another worker is at is taken over when no chunk of it was completed for this long. */
export const TAKEOVER_MS = 60_000;

/** Expired files that one run removes. */
const EXPIRED_FILES_PER_RUN = 100;
const RETRY_DELAY_MS = 1_000;
const RETRY_DELAY_MAX_MS = 60_000;

export interface JobReactorOptions {
  readonly ports: BatchPorts;
  readonly live: LiveProjection<BatchState>;
  readonly logger: Logger;
  readonly intervalMs: number;
  readonly runJob: (batchId: string) => Promise<JobRunEnd>;
}

interface Waiting {
  readonly untilMs: number;
  readonly failures: number;
}

/** Sees to it that every unfinished job is worked on: level-triggered, so a start at any point goes on from what is there. */
export class JobReactor {
  private readonly loop: ReconcileLoop;
  private readonly running = new Map<string, Promise<void>>();
  private readonly waiting = new Map<string, Waiting>();
  /** Unfinished jobs that were there at the start, or were created by this process: nobody else is known to be at them. */
  private readonly own: Set<string>;
  private isStopped = false;
  private stopListening: (() => void) | undefined;

  constructor(private readonly options: JobReactorOptions) {
    const { ports, live, logger, intervalMs } = options;
    this.own = new Set([...live.state().jobs.values()].filter(isUnfinished).map((job) => job.batchId));
    this.loop = new ReconcileLoop({ timers: ports.timers, logger, intervalMs, reconcile: () => this.reconcile() });
  }

  start(): void {
    this.stopListening = this.options.live.onChange(this.loop.trigger);
    this.loop.start();
  }

  /** This process took the command, so it begins at once; others wait to see whether it does. */
  claim(batchId: string): void {
    this.own.add(batchId);
    this.loop.trigger();
  }

  /** Begins no more jobs and waits for those under way to come to a stop. */
  async drain(): Promise<void> {
    this.isStopped = true;
    this.stopListening?.();
    await this.loop.close();
    await Promise.all(this.running.values());
  }

  private async reconcile(): Promise<void> {
    const nowMs = this.options.ports.clock.now();
    for (const job of this.options.live.state().jobs.values()) {
      if (isUnfinished(job)) this.consider(job, nowMs);
      else this.forget(job.batchId);
    }
    await this.removeExpiredFiles(nowMs);
  }

  private consider(job: BatchJobState, nowMs: number): void {
    const { batchId } = job;
    if (this.isStopped || this.running.has(batchId) || (this.waiting.get(batchId)?.untilMs ?? 0) > nowMs) return;
    if (!this.own.has(batchId) && lastSignOfLifeMs(job) + TAKEOVER_MS > nowMs) return;
    const isOnlyToEnd = job.cancelRequestedAt !== null || isExpired(job, nowMs);
    if (this.running.size >= JOBS_RUNNING_MAX && !isOnlyToEnd) return;
    this.running.set(batchId, this.work(batchId).finally(() => {
      this.running.delete(batchId);
      this.loop.trigger();
    }));
  }

  private async work(batchId: string): Promise<void> {
    try {
      const end = await this.options.runJob(batchId);
      this.waiting.delete(batchId);
      if (end === 'yielded') this.yieldTo(batchId);
    } catch (error) {
      const failures = (this.waiting.get(batchId)?.failures ?? 0) + 1;
      const delayMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(failures - 1, 10));
      this.waiting.set(batchId, { failures, untilMs: this.options.ports.clock.now() + delayMs });
      this.options.logger.warn({ err: error, batchId, delayMs }, 'a batch job could not go on; it is tried again');
    }
  }

  private yieldTo(batchId: string): void {
    this.own.delete(batchId);
    this.waiting.set(batchId, { failures: 0, untilMs: this.options.ports.clock.now() + TAKEOVER_MS });
    this.options.logger.info({ batchId }, 'another worker is at this batch job');
  }

  private forget(batchId: string): void {
    this.own.delete(batchId);
    this.waiting.delete(batchId);
  }

  private async removeExpiredFiles(nowMs: number): Promise<void> {
    const { ports, live } = this.options;
    const expired = [...live.state().files.values()].filter((file) => file.expiresAt !== null && Date.parse(file.expiresAt) <= nowMs).slice(0, EXPIRED_FILES_PER_RUN);
    for (const { fileId, organisationId, objectKey } of expired) {
      const command = { kind: 'delete', nowMs, fileId, organisationId, reason: 'expired' } as const;
      await handleCommand(ports.log, fileDecider, fileRef(fileId), command, metadataOf(ports, fileId));
      await ports.objects.delete(objectKey);
    }
  }
}

function lastSignOfLifeMs(job: BatchJobState): number {
  return Date.parse(job.lastChunkAt ?? job.started?.at ?? job.createdAt ?? job.expiresAt);
}

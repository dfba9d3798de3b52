import { CANCELLED_MESSAGE, EXPIRED_MESSAGE, isSuccess, lineRequestId, type BatchJobState, type LineOutcome } from '@penstock/domain-batching';
import type { Logger, Timers } from '@penstock/kernel';
import type { BatchMetrics } from './batch-metrics.js';
import { ANSWER_BYTES_MAX, isShutOut, type GatewayLineClient, type LineReply } from './gateway-line-client.js';

/** Requests that one line may cost; then its last answer stands. */
export const LINE_ATTEMPTS_MAX = 8;
const RETRY_DELAY_MS = 500;
const RETRY_DELAY_MAX_MS = 30_000;

/** Why no further line of a job may begin. */
export type EndReason = 'cancelled' | 'expired';

export interface LineTask {
  readonly job: BatchJobState;
  readonly lineNumber: number;
  readonly bodyText: string;
  /** Asked before each request. */
  readonly endReason: () => EndReason | undefined;
  /** Asked before each request: true once no further one may be sent from here. */
  readonly isGivenUp: () => boolean;
  /** Aborted when the service stops. */
  readonly signal: AbortSignal;
}

/** No further request may be sent from this worker. */
export class LineGivenUpError extends Error {
  override readonly name = 'LineGivenUpError';
}

export interface LineRunnerOptions {
  readonly client: GatewayLineClient;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly metrics: BatchMetrics;
}

/**
 * Gets one line answered. What may pass is tried again with growing delays: refusals a limited number of times, a gateway
 * that is not there for as long as the job lasts, since that says nothing about the line.
 */
export class LineRunner {
  constructor(private readonly options: LineRunnerOptions) {}

  /** Rejects with {@link LineGivenUpError} or the reason of the abort. */
  async run(task: LineTask): Promise<LineOutcome> {
    let last: LineOutcome | undefined;
    let attempts = 0;
    for (let failures = 0; ; failures += 1) {
      const ended = task.endReason();
      if (ended !== undefined) return this.counted(last ?? notRun(ended));
      if (task.isGivenUp()) throw new LineGivenUpError('another worker has the line, or the service drains');
      const requestId = lineRequestId(task.job.batchId, task.lineNumber, attempts);
      const reply = await this.options.client.send({ job: task.job, requestId, bodyText: task.bodyText, signal: task.signal });
      const isAbout = reply.kind !== 'unreachable' && !isShutOut(reply);
      if (isAbout) {
        attempts += 1;
        last = outcomeOf(reply);
        if (!mayRetry(reply) || attempts >= LINE_ATTEMPTS_MAX) return this.counted(last);
      } else if (failures === 0) {
        this.options.logger.warn({ batchId: task.job.batchId, reason: reply.kind === 'unreachable' ? reply.reason : 'the gateway does not accept INTERNAL_TOKEN' }, 'the gateway takes no batch lines; they wait');
      }
      this.options.metrics.retries.inc();
      await this.pause(delayOf(reply, failures), task.signal);
    }
  }

  private counted(outcome: LineOutcome): LineOutcome {
    this.options.metrics.lines.inc({ outcome: isSuccess(outcome) ? 'succeeded' : outcome.kind === 'answered' ? 'failed' : 'unanswered' });
    return outcome;
  }

  private pause(delayMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancel();
        reject(signal.reason as Error);
      };
      const cancel = this.options.timers.after(delayMs, () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}

export function notRun(reason: EndReason): LineOutcome {
  return reason === 'cancelled' ? { kind: 'unanswered', code: 'batch_cancelled', message: CANCELLED_MESSAGE } : { kind: 'unanswered', code: 'batch_expired', message: EXPIRED_MESSAGE };
}

function outcomeOf(reply: LineReply): LineOutcome {
  switch (reply.kind) {
    case 'answer':
      return { kind: 'answered', statusCode: reply.statusCode, requestId: reply.requestId, bodyText: reply.bodyText };
    case 'timeout':
      return { kind: 'unanswered', code: 'request_timeout', message: 'The request was not answered in time.' };
    case 'oversized':
      return { kind: 'unanswered', code: 'request_failed', message: `The answer is longer than ${ANSWER_BYTES_MAX} bytes; ask for fewer tokens or choices.` };
    default:
      return { kind: 'unanswered', code: 'request_failed', message: 'The connection to the platform broke while the request ran.' };
  }
}

function mayRetry(reply: LineReply): boolean {
  return reply.kind === 'broken' || (reply.kind === 'answer' && reply.mayRetry);
}

function delayOf(reply: LineReply, failures: number): number {
  const growing = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(failures, 10));
  const asked = reply.kind === 'answer' ? reply.retryAfterMs : undefined;
  return Math.min(RETRY_DELAY_MAX_MS, Math.max(growing, asked ?? 0));
}

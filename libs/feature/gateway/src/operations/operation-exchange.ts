import type { Lease } from '@penstock/contract-commands';
import type { ApiFault } from '@penstock/contract-http';
import { dialectOf, noUsage, type RunningUsage } from '@penstock/domain-serving';
import { ANSWER_TOKENS_ASSUMED, limitsOf, servedModelOf } from '../frame/exchange-end.js';
import { ModelExchange } from '../frame/model-exchange.js';
import type { ModelJob } from '../frame/model-work.js';
import { EngineSession, type SessionSink } from './engine-session.js';
import type { Operation, OperationOutcome } from './operation.js';

/** One request that was checked and may be worked on. */
export interface OperationJob extends ModelJob {
  /** For logs. */
  readonly name: string;
  readonly operation: Operation;
  readonly bodyBytes: number;
  readonly cacheSalt: string;
}

type CompletedOperation = Extract<OperationOutcome, { kind: 'completed' }>;

/** One operation from its admission to its record of usage. */
export class OperationExchange extends ModelExchange<OperationJob, CompletedOperation, EngineSession> implements SessionSink {
  protected get name(): string {
    return this.job.name;
  }

  get promptTokensEstimate(): number {
    return this.job.operation.promptTokensEstimate;
  }

  get answerTokensMax(): number {
    return Math.min(this.job.operation.asked.completionTokensMax ?? ANSWER_TOKENS_ASSUMED, this.job.endpoint.serving.contextTokens);
  }

  get hasBegun(): boolean {
    return this.delivered !== noUsage;
  }

  protected asksForStream({ engine }: Lease): boolean {
    return this.job.operation.asksForStream(dialectOf(engine));
  }

  protected makeAttempt(lease: Lease, takesLead: (() => boolean) | undefined): EngineSession {
    const { parts, job } = this;
    return new EngineSession({
      lease, servedModel: servedModelOf(lease, job.endpoint), cacheSalt: job.cacheSalt, clock: parts.clock, origin: job, limits: limitsOf(parts.config, job.endpoint), clients: parts.clients,
      sink: takesLead === undefined ? this : {
        onFrames: (frames, usage) => !takesLead() || this.onFrames(frames, usage),
        onReply: () => this.onReply(),
        onBegun: () => {
          if (takesLead()) this.onBegun();
        },
      },
    });
  }

  protected runAttempt(session: EngineSession): Promise<OperationOutcome> {
    return this.job.operation.perform(session);
  }

  onReply(): void {
    this.noteFirstToken();
  }

  onBegun(): void {
    this.noteFirstToken();
  }

  /** What reached the client's socket is what the client pays for. */
  onFrames(frames: string, usage: RunningUsage): boolean {
    if (this.isGone) return true;
    const canTakeMore = this.answer.write(frames, this.onDrain);
    this.delivered = usage;
    this.lastTextMs = this.parts.clock.now();
    this.ledger?.usage.progress(this.progress(usage));
    return canTakeMore;
  }

  protected finish({ answer }: CompletedOperation): void {
    const { operation } = this.job;
    if (operation.isStreamed) this.answer.endStream(answer, operation.terminator);
    else this.answer.sendJson(answer);
  }

  protected failStream(fault: ApiFault): void {
    this.answer.failStream(fault, this.job.operation.failureFrames(fault));
  }
}

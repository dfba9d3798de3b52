import type { Principal } from '@penstock/domain-access';
import type { CalledEndpoint } from '@penstock/domain-catalog';
import type { PriorityClass, PromptTrail } from '@penstock/domain-routing';
import type { OpenUsage, UsageDraft } from '@penstock/domain-usage';
import type { DirectCall } from '../http/route-call.js';
import type { TokenEstimate } from '../limits/request-limits.js';

/** One request to a model that was checked and may be worked on. */
export interface ModelJob {
  readonly requestId: string;
  readonly principal: Principal;
  /** Set for a line of a batch job. */
  readonly batchId: string | null;
  readonly endpoint: CalledEndpoint;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** W3C trace context for those who are asked on its behalf. */
  readonly traceparent: string | undefined;
  /** Where it stands in a queue. */
  readonly priority: PriorityClass;
  /** What the choice of a replica goes by; undefined for work without a prompt of its own. */
  readonly prompt: PromptTrail | undefined;
  /** What its usage is recorded as; null for work that uses nothing of the model. */
  readonly metered: UsageDraft['operation'] | null;
  readonly isStreamed: boolean;
}

/** What is known of a request before its body was read. */
export interface WorkStart {
  readonly startedAtMs: number;
  readonly traceparent: string | undefined;
}

/** The record of usage that a request keeps. */
export interface UsageLedger {
  readonly draft: UsageDraft;
  readonly usage: OpenUsage;
}

/** What is particular to one kind of request to a model. */
export interface ModelWork<Job extends ModelJob, Call extends DirectCall = DirectCall> {
  /** For traces, in the words of `gen_ai.operation.name` where it has one. */
  readonly name: string;
  /** Reads and checks the body. Throws a {@link RequestFault} where it is at fault. */
  prepare(call: Call, start: WorkStart): Job;
  /** What the limits of the caller are asked for. */
  estimate(job: Job): TokenEstimate;
  /** Answers the client. `ledger` is undefined for work that is not metered. Throws a {@link RequestFault} while nothing was sent. */
  carryOut(call: Call, job: Job, ledger: UsageLedger | undefined): Promise<void>;
}

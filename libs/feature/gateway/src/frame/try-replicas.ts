import type { Lease } from '@penstock/contract-commands';
import type { ApiFault } from '@penstock/contract-http';
import type { EngineFault } from '@penstock/domain-serving';
import type { AdmissionRequest } from '../chat/admission.js';
import type { ChatParts } from '../chat/chat-parts.js';
import type { ModelJob } from './model-work.js';

/** Further attempts at another replica, and only while nothing of an answer was sent. */
const RETRIES_MAX = 1;
/** A request that failed once waits this long for another replica: then its error is worth more than the queue, which others in the same trouble fill. */
const RETRY_WAIT_MS_MAX = 5_000;

export type Failed = { readonly kind: 'failed'; readonly fault: EngineFault };
export type Aborted = { readonly kind: 'aborted' };
export type Refused = { readonly kind: 'refused'; readonly fault: ApiFault };

/** A request as far as going from replica to replica is concerned. */
export interface ReplicaUser<Done extends { readonly kind: string }> {
  readonly job: ModelJob;
  readonly promptTokensEstimate: number;
  /** Tokens that the answer may have at most, over all of its choices. */
  readonly answerTokensMax: number;
  /** Whether its client went away. */
  readonly isGone: boolean;
  /** Whether something of an answer was sent, so that nobody else can begin anew. */
  readonly hasBegun: boolean;
  /** Whether it was put to a second replica already, so that a failure is its last. */
  readonly isSpent: boolean;
  goneSignal(): AbortSignal;
  /** Resolves once a crash can leave nothing at an engine without a record. */
  recorded(): Promise<void> | undefined;
  /** One attempt at the replica of the lease, which it releases. */
  work(lease: Lease): Promise<Done | Failed | Aborted>;
}

/** Gets a slot, works on the request, and goes to another replica once where the first one failed before anything was sent. */
export async function tryReplicas<Done extends { readonly kind: 'completed' | 'answer' }>(parts: ChatParts, user: ReplicaUser<Done>): Promise<Done | Failed | Aborted | Refused> {
  const excludedReplicaIds: string[] = [];
  let earlier: Failed | undefined;
  await user.recorded();
  for (let attempt = 0; ; attempt += 1) {
    if (user.isGone) return { kind: 'aborted' };
    const asked = admissionOf(user, excludedReplicaIds, attempt === 0 ? undefined : RETRY_WAIT_MS_MAX);
    const admission = parts.desk.admitAtOnce(asked) ?? (await parts.desk.admit(asked));
    if (admission.kind === 'aborted') return admission;
    // What the replica said explains more than that there is no other one.
    if (admission.kind === 'refused') return earlier ?? { kind: 'refused', fault: admission.refusal };
    parts.metrics.admissions.inc({ source: admission.source });
    const outcome = await user.work(admission.lease);
    if (outcome.kind !== 'failed' || !mayGoOn(parts, user, outcome, attempt)) return outcome;
    parts.metrics.retries.inc({ reason: outcome.fault.code });
    excludedReplicaIds.push(admission.lease.replicaId);
    earlier = outcome;
  }
}

/** What a slot is asked for with. `waitMsMax` is how long the request may stand in a queue; as long as it may at all when undefined. */
export function admissionOf(user: Omit<ReplicaUser<never>, 'work'>, excludedReplicaIds: readonly string[], waitMsMax: number | undefined): AdmissionRequest {
  const { requestId, principal, endpoint, traceparent, priority, prompt } = user.job;
  return {
    requestId, organisationId: principal.organisationId, endpointId: endpoint.endpointId, modelName: endpoint.name, excludedReplicaIds, promptTokensEstimate: user.promptTokensEstimate, answerTokensMax: user.answerTokensMax,
    priority, weight: 1, traceparent, prompt, adapter: endpoint.adapter, waitMsMax, signal: () => user.goneSignal(),
  };
}

function mayGoOn(parts: ChatParts, user: Pick<ReplicaUser<never>, 'hasBegun' | 'isSpent' | 'job'>, { fault }: Failed, attempt: number): boolean {
  return fault.retryElsewhere && attempt < RETRIES_MAX && !user.hasBegun && !user.isSpent && parts.retries.of(user.job.endpoint.endpointId).mayRetry();
}

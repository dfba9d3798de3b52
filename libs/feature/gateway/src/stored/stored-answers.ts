import type { Principal } from '@penstock/domain-access';
import type { Clock, Logger, SharedRecords, Timers } from '@penstock/kernel';
import { RequestFault } from '../http/request-fault.js';
import { answerKey, isDeserted, type AnswerHead } from './answer-head.js';
import { localSource, storedSource, type AnswerSource } from './answer-source.js';
import { AnswerStore, type FoundHead } from './answer-store.js';
import type { Execution, SelfCall } from './self-call.js';
import { RunningAnswer } from './running-answer.js';

/** Answers that this gateway makes for the store at once, and what they may hold in memory together. */
const RUNNING_MAX = 500;
const RUNNING_BYTES_MAX = 256 * 1_024 * 1_024;
/** Claims of one key that may come to nothing because others are faster. */
const CLAIMS_MAX = 5;

export interface StoredRequest extends Execution {
  readonly answerId: string;
  readonly fingerprint: string;
  readonly endpointId: string | null;
  readonly isAsync: boolean;
}

export interface StoredAnswer {
  readonly head: AnswerHead;
  readonly source: AnswerSource;
  /** False for the request that the answer is made for. */
  readonly isReplay: boolean;
}

export interface StoredAnswersParts {
  readonly records: SharedRecords;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly self: SelfCall;
}

/** One execution for one key, however often and at however many gateways it is asked for. */
export class StoredAnswers {
  private readonly store: AnswerStore;
  private readonly running = new Map<string, RunningAnswer>();
  private idleWaiters: (() => void)[] = [];

  constructor(private readonly parts: StoredAnswersParts) {
    this.store = new AnswerStore(parts.records);
  }

  /** The answer to a request: a stored one, one that is being made, or a new execution. */
  async obtain(request: StoredRequest): Promise<StoredAnswer> {
    const key = answerKey(request.principal.organisationId, request.answerId);
    for (let claim = 0; claim < CLAIMS_MAX; claim += 1) {
      const found = await this.store.find(key);
      if (found !== undefined && found.head.fingerprint !== request.fingerprint) {
        throw new RequestFault({ code: 'idempotency_key_reused', message: 'This Idempotency-Key was used for another request within the last 24 hours. Use a new key for a new request.', param: 'Idempotency-Key' });
      }
      // A deserted one is made again under the same request id, so that it is billed once.
      if (found !== undefined && !isDeserted(found.head, this.parts.clock.now())) return this.known(key, found.head);
      const started = await this.start(key, request, found);
      if (started !== undefined) return started;
    }
    throw new RequestFault({ code: 'service_unavailable', message: 'Other requests with the same Idempotency-Key came first, and none of them stayed. Try again shortly.', retryAfterMs: 1_000 });
  }

  /** An answer of the organisation by its id. */
  async find(principal: Principal, answerId: string): Promise<StoredAnswer | undefined> {
    const key = answerKey(principal.organisationId, answerId);
    const found = await this.store.find(key);
    return found === undefined ? undefined : this.known(key, found.head);
  }

  /** Waits until nothing is being made here any more, at most `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    if (this.running.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.parts.timers.after(limitMs, resolve);
      this.idleWaiters.push(() => {
        cancel();
        resolve();
      });
    });
  }

  private known(key: string, head: AnswerHead): StoredAnswer {
    const running = this.running.get(key);
    const source = running === undefined ? storedSource(this.store, key, head.attempt, this.parts) : localSource(running);
    return { head: running?.head ?? head, source, isReplay: true };
  }

  private async start(key: string, request: StoredRequest, deserted: FoundHead | undefined): Promise<StoredAnswer | undefined> {
    const { answerId, fingerprint, endpointId, isAsync } = request;
    let bytes = 0;
    for (const answer of this.running.values()) bytes += answer.bytes;
    if (this.running.size >= RUNNING_MAX || bytes >= RUNNING_BYTES_MAX) throw new RequestFault({ code: 'service_unavailable', message: 'This gateway makes as many stored answers as it can. Try again shortly.', retryAfterMs: 1_000 });
    const nowMs = this.parts.clock.now();
    const requestId = deserted?.head.requestId ?? request.requestId;
    const head: AnswerHead = {
      id: answerId, fingerprint, requestId, endpointId, isAsync, state: 'running', attempt: (deserted?.head.attempt ?? 0) + 1,
      startedAtMs: deserted?.head.startedAtMs ?? nowMs, touchedAtMs: nowMs, status: null, headers: {}, isTruncated: false, pieces: 0,
    };
    const revision = deserted === undefined ? await this.store.create(key, head) : await this.store.update(key, head, deserted.revision);
    if (revision === undefined) return undefined;
    const answer = new RunningAnswer(key, head, revision, { ...this.parts, store: this.store });
    this.running.set(key, answer);
    void this.parts.self.run({ ...request, requestId }, answer)
      .catch((error: unknown) => this.parts.logger.error({ err: error, requestId }, 'a stored answer could not be made'))
      .finally(() => this.finished(key));
    return { head, source: localSource(answer), isReplay: false };
  }

  private finished(key: string): void {
    this.running.delete(key);
    if (this.running.size === 0) for (const resolve of this.idleWaiters.splice(0)) resolve();
  }
}

import { QUOTA_BUCKETS_MAX } from '@penstock/contract-commands';
import type { LimitsSetV1 } from '@penstock/contract-events';
import { contextTokensMaxOf, limitsAround, limitsOn, type AccessState, type LimitedModel, type Principal, type QuotaSlice } from '@penstock/domain-access';
import type { PriorityClass } from '@penstock/domain-routing';
import type { OpenUsage } from '@penstock/domain-usage';
import { RequestFault } from '../http/request-fault.js';
import type { DirectCall } from '../http/route-call.js';
import { priorityOf } from './priority-of.js';
import { limitFault, tooLargeFault, type NamedAsk } from './limit-fault.js';
import { rateHeaders } from './rate-headers.js';
import type { QuotaDesk, QuotaHeld } from './quota-desk.js';

/** A prompt has at most one token for so many bytes of its body: text of any language has fewer, so a reservation holds. */
const BYTES_PER_TOKEN_MIN = 2;
/** What text mostly has; for judging a request before it was worked on. */
const BYTES_PER_TOKEN_USUAL = 4;

/** What a request may use, as far as can be told before it is worked on. */
export interface TokenEstimate {
  readonly bodyBytes: number;
  /** What the caller allows for all answers together; null when nothing was said. */
  readonly completionTokensMax: number | null;
  /** Prompt and one answer fit into it. */
  readonly contextTokens: number;
  readonly choices: number;
}

export interface LimitedRequest {
  readonly principal: Principal;
  /** A line of a batch job: batches run when there is room, and do not count against what is interactive. */
  readonly isBatch: boolean;
  readonly model: LimitedModel;
  readonly estimate: TokenEstimate;
  /** Told of the `x-ratelimit-*` and `RateLimit` headers of the answer. */
  readonly setHeader: (name: string, value: string) => void;
  /** Aborted when the client goes away. */
  readonly signal: () => AbortSignal;
}

/** What a request holds of its limits. */
export interface LimitReservation {
  /** Settles the tokens by the request's own record of usage. */
  watch(usage: OpenUsage): OpenUsage;
  /** Gives back what was only held. To be called once the request is over, however it ended. */
  end(): void;
}

const unlimited: LimitReservation = { watch: (usage) => usage, end: () => undefined };

/** Holds every request to the limits of its organisation, its project and its key. */
export class RequestLimits {
  constructor(private readonly desk: QuotaDesk, private readonly access: () => AccessState) {}

  /** The context that a request of the principal to the model may fill, in tokens. Throws when its prompt alone, which stands in `param`, is longer than a limit allows. */
  contextTokens(principal: Principal, model: LimitedModel, endpointTokens: number, bodyBytes: number, param = 'messages'): number {
    const limit = contextTokensMaxOf(limitsOn(this.access(), principal, model));
    if (limit === null) return endpointTokens;
    const promptTokens = Math.ceil(bodyBytes / BYTES_PER_TOKEN_USUAL);
    if (promptTokens >= limit) throw new RequestFault({ code: 'context_length_exceeded', message: `Your key may use ${limit} tokens in one request, and this one has about ${promptTokens} before its answer. Shorten it, or have the limit raised.`, param });
    return Math.min(endpointTokens, limit);
  }

  /** Where a request of the caller to the model stands in a queue. Lines of batch jobs come last. */
  priority({ principal, batchId }: Pick<DirectCall, 'principal' | 'batchId'>, model: LimitedModel, serviceTier: unknown): PriorityClass {
    return batchId === null ? priorityOf(limitsOn(this.access(), principal, model), serviceTier) : 'batch';
  }

  /** Takes the request out of every limit it is under, or throws the {@link RequestFault} that says which one it met. */
  reserve(request: LimitedRequest): LimitReservation | Promise<LimitReservation> {
    const limits = request.isBatch ? [] : limitsOn(this.access(), request.principal, request.model);
    if (limits.length === 0) return unlimited;
    const asks = asksOf(limits, (limit, set) => tokensOf(request.estimate, limit, set));
    return asks.length === 0 ? unlimited : this.take(request, asks);
  }

  private async take(request: LimitedRequest, asks: readonly NamedAsk[]): Promise<LimitReservation> {
    const answer = await this.desk.take(request.principal.organisationId, asks, request.signal());
    const slices = answer.kind === 'held' ? answer.parts.map(({ slice }) => slice) : answer.slices;
    for (const [name, value] of Object.entries(rateHeaders(asks, slices))) request.setHeader(name, value);
    if (answer.kind === 'denied') {
      const ask = asks[answer.askIndex];
      const slice = slices[answer.askIndex];
      throw new RequestFault(limitFault(ask, slice));
    }
    return this.reservation(answer, asks);
  }

  /** What is left of every limit around the principal, as the router knows it now. Nothing is taken. */
  async look(principal: Principal): Promise<readonly { readonly ask: NamedAsk; readonly slice: QuotaSlice }[]> {
    const asks = asksOf(limitsAround(this.access(), principal), () => 1).slice(0, QUOTA_BUCKETS_MAX);
    const slices = await this.desk.look(principal.organisationId, asks);
    return asks.flatMap((ask, index) => (slices[index] === undefined ? [] : [{ ask, slice: slices[index] }]));
  }

  private reservation(held: QuotaHeld, asks: readonly NamedAsk[]): LimitReservation {
    let isSettled = false;
    const settle = (tokens: number | undefined): void => {
      if (isSettled) return;
      isSettled = true;
      this.desk.settle(held, (index, reserved) => (asks[index]?.unit === 'tokens' ? tokens ?? 0 : reserved));
    };
    return {
      watch: (usage) => ({
        written: () => usage.written(),
        progress: (progress) => usage.progress(progress),
        settle: (record) => {
          settle(record.promptTokens + record.completionTokens);
          return usage.settle(record);
        },
      }),
      // A request that has no record of usage used no tokens.
      end: () => settle(undefined),
    };
  }
}

/** Each limit of each set, by the name that all gateways know it by. `tokens` says how many a limit on tokens is asked for. */
function asksOf(limits: readonly LimitsSetV1[], tokens: (limit: number, set: LimitsSetV1) => number): NamedAsk[] {
  const asks: NamedAsk[] = [];
  for (const set of limits) {
    const { requestsPerMinute, tokensPerMinute, concurrency } = set.limits;
    const name = `${set.subjectId}/${set.model ?? ''}`;
    if (concurrency !== null) asks.push({ key: `held/${name}`, kind: 'held', limit: concurrency, amount: 1, unit: 'concurrent requests', set });
    if (requestsPerMinute !== null) asks.push({ key: `rpm/${name}`, kind: 'window', limit: requestsPerMinute, amount: 1, unit: 'requests', set });
    if (tokensPerMinute !== null) asks.push({ key: `tpm/${name}`, kind: 'window', limit: tokensPerMinute, amount: tokens(tokensPerMinute, set), unit: 'tokens', set });
  }
  return asks;
}

/** Prompt and answer as they may come to at most, so that the limit holds whatever the engine does. */
function tokensOf({ bodyBytes, completionTokensMax, contextTokens, choices }: TokenEstimate, limit: number, set: LimitsSetV1): number {
  const asked = Math.ceil(bodyBytes / BYTES_PER_TOKEN_USUAL) + (completionTokensMax ?? 0);
  if (asked > limit) throw new RequestFault(tooLargeFault(set, limit, asked));
  const most = contextTokens * choices;
  const upper = completionTokensMax === null ? most : Math.min(most, Math.ceil(bodyBytes / BYTES_PER_TOKEN_MIN) + completionTokensMax);
  return Math.min(limit, upper);
}

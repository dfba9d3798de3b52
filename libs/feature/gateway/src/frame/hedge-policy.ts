import type { EndpointState } from '@penstock/domain-catalog';
import type { UsageDraft } from '@penstock/domain-usage';
import type { RetryBudgets } from '../chat/retry-budget.js';

/** Of the requests to an endpoint, this share gets a second attempt at most. */
export const HEDGED_SHARE_MAX = 0.05;
/** A longer prompt costs more to read twice than the wait is worth. In tokens. */
export const HEDGE_PROMPT_TOKENS_MAX = 4_096;
/** A whole answer shows nothing before its end, so a second attempt writes it once more: never one that may be longer. In tokens, over all choices. */
export const HEDGE_ANSWER_TOKENS_MAX = 1_024;
/** The newest times that the percentile is taken of, and how many there have to be. */
const SAMPLES = 128;
const SAMPLES_MIN = 20;
const PERCENTILE = 0.95;
/** An endpoint that answers sooner than this gains nothing from a second attempt. */
const HEDGE_AFTER_MS_MIN = 20;
/** Endpoints whose times are remembered. */
const ENDPOINTS_MAX = 10_000;
/** Requests with a second attempt that a gateway remembers. */
export const HEDGED_REQUESTS_MAX = 10_000;
/** Counts are halved beyond this many requests, so that the share is one of recent requests. */
const COUNTED_MAX = 10_000;

/** What is waited for: the first token, or the whole answer where an engine gives it at once, which takes another time for each kind of work. */
export type Awaited = 'first-token' | UsageDraft['operation'];

/** The tokens that a second attempt costs at most. */
export interface HedgeCost {
  readonly promptTokens: number;
  /** None that counts where the loser is given up at the first token of the other. */
  readonly answerTokens: number;
}

interface Times {
  readonly ms: number[];
  next: number;
}

interface Observed {
  readonly times: Map<Awaited, Times>;
  requests: number;
  hedges: number;
}

/** Which requests get a second attempt, and when: only at endpoints that were deployed with the engine option `hedge`. */
export class HedgePolicy {
  private readonly endpoints = new Map<string, Observed>();

  constructor(private readonly retries: RetryBudgets) {}

  isOn({ engineOptions }: EndpointState): boolean {
    return engineOptions['hedge'] === true;
  }

  /** Counts a request, and says after how many milliseconds without what is awaited a second attempt is worth its cost; undefined for never. */
  begin(endpointId: string, awaited: Awaited, { promptTokens, answerTokens }: HedgeCost): number | undefined {
    const observed = this.of(endpointId);
    observed.requests += 1;
    if (observed.requests > COUNTED_MAX) {
      observed.requests /= 2;
      observed.hedges /= 2;
    }
    const ms = observed.times.get(awaited)?.ms;
    if (promptTokens > HEDGE_PROMPT_TOKENS_MAX || answerTokens > HEDGE_ANSWER_TOKENS_MAX || ms === undefined || ms.length < SAMPLES_MIN) return undefined;
    const sorted = ms.toSorted((one, other) => one - other);
    return Math.max(HEDGE_AFTER_MS_MIN, sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * PERCENTILE) - 1)] ?? Infinity);
  }

  /** True when one more second attempt is within the share and the budget of retries; it counts as made then. */
  mayHedge(endpointId: string): boolean {
    const observed = this.of(endpointId);
    if (observed.hedges + 1 > observed.requests * HEDGED_SHARE_MAX || !this.retries.of(endpointId).mayRetry()) return false;
    observed.hedges += 1;
    return true;
  }

  /** How long a replica took to what was awaited, or for how long at least it had not come. */
  observe(endpointId: string, awaited: Awaited, ms: number): void {
    const { times } = this.of(endpointId);
    let newest = times.get(awaited);
    if (newest === undefined) times.set(awaited, (newest = { ms: [], next: 0 }));
    newest.ms[newest.next] = ms;
    newest.next = (newest.next + 1) % SAMPLES;
  }

  private of(endpointId: string): Observed {
    let observed = this.endpoints.get(endpointId);
    if (observed !== undefined) return observed;
    if (this.endpoints.size >= ENDPOINTS_MAX) this.endpoints.clear();
    observed = { times: new Map(), requests: 0, hedges: 0 };
    this.endpoints.set(endpointId, observed);
    return observed;
  }
}

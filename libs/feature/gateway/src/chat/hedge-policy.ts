import type { EndpointState } from '@penstock/domain-catalog';
import type { RetryBudgets } from './retry-budget.js';

/** Of the requests to an endpoint, this share gets a second attempt at most. */
export const HEDGED_SHARE_MAX = 0.05;
/** A longer prompt costs more to read twice than the wait is worth. In tokens. */
export const HEDGE_PROMPT_TOKENS_MAX = 4_096;
/** The newest times to the first token that the percentile is taken of, and how many there have to be. */
const SAMPLES = 128;
const SAMPLES_MIN = 20;
const PERCENTILE = 0.95;
/** An endpoint that answers sooner than this gains nothing from a second attempt. */
const HEDGE_AFTER_MS_MIN = 20;
/** Endpoints whose times are remembered. */
const ENDPOINTS_MAX = 10_000;
/** Counts are halved beyond this many requests, so that the share is one of recent requests. */
const COUNTED_MAX = 10_000;

interface Observed {
  readonly firstTokenMs: number[];
  next: number;
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

  /** Counts a request, and says after how many milliseconds without a first token a second attempt is worth its cost; undefined for never. */
  begin(endpointId: string, promptTokens: number): number | undefined {
    const observed = this.of(endpointId);
    observed.requests += 1;
    if (observed.requests > COUNTED_MAX) {
      observed.requests /= 2;
      observed.hedges /= 2;
    }
    if (promptTokens > HEDGE_PROMPT_TOKENS_MAX || observed.firstTokenMs.length < SAMPLES_MIN) return undefined;
    const sorted = observed.firstTokenMs.toSorted((one, other) => one - other);
    return Math.max(HEDGE_AFTER_MS_MIN, sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * PERCENTILE) - 1)] ?? Infinity);
  }

  /** True when one more second attempt is within the share and the budget of retries; it counts as made then. */
  mayHedge(endpointId: string): boolean {
    const observed = this.of(endpointId);
    if (observed.hedges + 1 > observed.requests * HEDGED_SHARE_MAX || !this.retries.of(endpointId).mayRetry()) return false;
    observed.hedges += 1;
    return true;
  }

  /** How long a replica took to its first token, or for how long at least it had not come. */
  observe(endpointId: string, ms: number): void {
    const observed = this.of(endpointId);
    observed.firstTokenMs[observed.next] = ms;
    observed.next = (observed.next + 1) % SAMPLES;
  }

  private of(endpointId: string): Observed {
    let observed = this.endpoints.get(endpointId);
    if (observed !== undefined) return observed;
    if (this.endpoints.size >= ENDPOINTS_MAX) this.endpoints.clear();
    observed = { firstTokenMs: [], next: 0, requests: 0, hedges: 0 };
    this.endpoints.set(endpointId, observed);
    return observed;
  }
}

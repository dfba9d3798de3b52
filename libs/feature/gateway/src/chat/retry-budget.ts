/** Retries may add this share to the requests that clients sent. */
export const RETRY_SHARE_MAX = 0.2;
/** Requests and retries are counted over this time. */
export const RETRY_WINDOW_MS = 10_000;
/** Three a second are allowed however few requests there are. */
export const RETRIES_MIN = (3 * RETRY_WINDOW_MS) / 1_000;

/** Endpoints that have a budget. */
const ENDPOINTS_MAX = 10_000;

/** A budget for each endpoint: one whose replicas all fail uses up none but its own. */
export class RetryBudgets {
  private readonly budgets = new Map<string, RetryBudget>();

  constructor(private readonly now: () => number) {}

  of(endpointId: string): RetryBudget {
    let budget = this.budgets.get(endpointId);
    if (budget !== undefined) return budget;
    if (this.budgets.size >= ENDPOINTS_MAX) this.budgets.clear();
    budget = new RetryBudget(this.now);
    this.budgets.set(endpointId, budget);
    return budget;
  }
}

/** Keeps retries from multiplying the load of engines that fail because of load. */
export class RetryBudget {
  private windowStartMs = -Infinity;
  private requests = 0;
  private retries = 0;
  private earlier = { requests: 0, retries: 0 };

  constructor(private readonly now: () => number) {}

  countRequest(): void {
    this.turn();
    this.requests += 1;
  }

  /** True when one more request may be tried again; it counts as done then. */
  mayRetry(): boolean {
    this.turn();
    const allowed = Math.max(RETRIES_MIN, RETRY_SHARE_MAX * (this.requests + this.earlier.requests));
    if (this.retries + this.earlier.retries + 1 > allowed) return false;
    this.retries += 1;
    return true;
  }

  private turn(): void {
    const elapsedMs = this.now() - this.windowStartMs;
    if (elapsedMs < RETRY_WINDOW_MS) return;
    this.earlier = elapsedMs < 2 * RETRY_WINDOW_MS ? { requests: this.requests, retries: this.retries } : { requests: 0, retries: 0 };
    this.windowStartMs = this.now();
    this.requests = 0;
    this.retries = 0;
  }
}

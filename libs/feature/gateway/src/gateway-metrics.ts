import type { UsageOutbox } from '@penstock/domain-usage';
import { createMetrics } from '@penstock/feature-shell';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export interface ModelMetrics {
  readonly timeToFirstToken: Histogram.Internal<'model'>;
  readonly duration: Histogram.Internal<'model'>;
  readonly promptTokens: Counter.Internal;
  readonly completionTokens: Counter.Internal;
}

/** Figures of the gateway; names of the `gen_ai` family where OpenTelemetry has one. */
export class GatewayMetrics {
  readonly registry: Registry;
  readonly requests: Counter<'route' | 'status'>;
  readonly timeToFirstToken: Histogram<'model'>;
  readonly duration: Histogram<'model'>;
  readonly tokens: Counter<'model' | 'type'>;
  readonly inFlight: Gauge;
  readonly admissions: Counter<'source'>;
  readonly retries: Counter<'reason'>;
  readonly hedges: Counter<'winner'>;
  readonly hedgeLoserSeconds: Counter;

  /** Looked up by every request, so the library's own search by labels is done once for each. */
  private readonly requestCounters = new Map<string, Counter.Internal>();
  private readonly models = new Map<string, ModelMetrics>();

  constructor(usage: UsageOutbox) {
    const registry = createMetrics('gateway');
    const registers = [registry];
    this.registry = registry;
    this.requests = new Counter({ name: 'penstock_http_requests_total', help: 'HTTP requests by route and status', labelNames: ['route', 'status'], registers });
    this.timeToFirstToken = new Histogram({ name: 'gen_ai_server_time_to_first_token_seconds', help: 'From the request to its first token', labelNames: ['model'], buckets: SECONDS_BUCKETS, registers });
    this.duration = new Histogram({ name: 'gen_ai_server_request_duration_seconds', help: 'From the request to the end of its answer', labelNames: ['model'], buckets: SECONDS_BUCKETS, registers });
    this.tokens = new Counter({ name: 'penstock_tokens_total', help: 'Tokens of prompts and answers', labelNames: ['model', 'type'], registers });
    this.inFlight = new Gauge({ name: 'penstock_chat_requests_in_flight', help: 'Chat requests in work or waiting', registers });
    this.admissions = new Counter({ name: 'penstock_admissions_total', help: 'Leases by who granted them', labelNames: ['source'], registers });
    this.retries = new Counter({ name: 'penstock_chat_retries_total', help: 'Second attempts before the first token', labelNames: ['reason'], registers });
    this.hedges = new Counter({ name: 'penstock_chat_hedges_total', help: 'Second attempts because the first token was late, by which attempt answered', labelNames: ['winner'], registers });
    this.hedgeLoserSeconds = new Counter({ name: 'penstock_chat_hedge_loser_seconds_total', help: 'Time that attempts held a slot whose answer was not used', registers });
    new Gauge({ name: 'penstock_usage_spool_bytes', help: 'Bytes of usage on the disk', registers, collect() { this.set(usage.stats().bytes); } });
    new Gauge({ name: 'penstock_usage_unpublished', help: 'Settled requests that the event log has not confirmed', registers, collect() { this.set(usage.stats().unpublished); } });
  }

  countRequest(route: string, status: number): void {
    const name = `${route} ${status}`;
    let counter = this.requestCounters.get(name);
    // Routes and statuses are few.
    if (counter === undefined) this.requestCounters.set(name, (counter = this.requests.labels(route, String(status))));
    counter.inc();
  }

  /** The figures of one model; endpoints exist, so their names are bounded. */
  ofModel(model: string): ModelMetrics {
    let metrics = this.models.get(model);
    if (metrics === undefined) {
      metrics = { timeToFirstToken: this.timeToFirstToken.labels(model), duration: this.duration.labels(model), promptTokens: this.tokens.labels(model, 'prompt'), completionTokens: this.tokens.labels(model, 'completion') };
      this.models.set(model, metrics);
    }
    return metrics;
  }
}

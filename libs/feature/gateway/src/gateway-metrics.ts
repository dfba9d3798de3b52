import type { EndpointState } from '@penstock/domain-catalog';
import type { UsageOutbox } from '@penstock/domain-usage';
import { createMetrics } from '@penstock/feature-shell';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { TalliedCounter, type Tally } from './metric-tally.js';

const TOKEN_SECONDS_BUCKETS = [0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5];
const PROMPT_BUCKETS = [16, 64, 256, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576];
const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Who granted a slot. */
export type AdmissionSource = 'slots' | 'router' | 'gateway';

/** How many of something there are now. */
export class Level {
  value = 0;

  inc(): void {
    this.value += 1;
  }

  dec(): void {
    this.value -= 1;
  }
}

export interface ModelMetrics {
  readonly timeToFirstToken: Histogram.Internal<'model'>;
  readonly duration: Histogram.Internal<'model'>;
  readonly promptTokens: Tally;
  readonly completionTokens: Tally;
  readonly cachedTokens: Tally;
  readonly promptLength: Histogram.Internal<'model'>;
  readonly timePerToken: Histogram.Internal<'model'>;
  /** A request to the model is over; `code` says how: `completed`, or what its error was. */
  ended(code: string): void;
}

export type LabelledEndpoint = Pick<EndpointState, 'endpointId' | 'name' | 'organisationId'>;

/** What a model is called in metrics, which are open to whoever reaches the port: one that belongs to an organisation is nobody else's to know by its name, and two may have the same. */
export function modelLabel({ endpointId, name, organisationId }: LabelledEndpoint): string {
  return organisationId === null ? name : endpointId;
}

/** The time that a stream took per token after its first one, in seconds; undefined where it had no second one. */
export function secondsPerToken({ durationMs, ttftMs, completionTokens }: { readonly durationMs: number; readonly ttftMs: number | null; readonly completionTokens: number }): number | undefined {
  return ttftMs === null || completionTokens < 2 ? undefined : Math.max(0, durationMs - ttftMs) / 1_000 / (completionTokens - 1);
}

/** Figures of the gateway; names of the `gen_ai` family where OpenTelemetry has one. */
export class GatewayMetrics {
  readonly registry: Registry;
  readonly timeToFirstToken: Histogram<'model'>;
  readonly duration: Histogram<'model'>;
  private readonly timePerToken: Histogram<'model'>;
  private readonly promptLength: Histogram<'model'>;
  private readonly ends: TalliedCounter<'model' | 'code'>;
  readonly inFlight = new Level();
  readonly admissions: { inc(labels: { readonly source: AdmissionSource }): void };
  readonly retries: Counter<'reason'>;
  readonly hedges: Counter<'winner'>;
  readonly hedgeLoserSeconds: Counter;

  private readonly requests: TalliedCounter<'route' | 'status'>;
  private readonly tokens: TalliedCounter<'model' | 'type'>;
  /** By route and status. */
  private readonly requestTallies = new Map<string, Map<number, Tally>>();
  private readonly models = new Map<string, ModelMetrics>();

  constructor(usage: UsageOutbox) {
    const registry = createMetrics('gateway');
    const registers = [registry];
    this.registry = registry;
    this.requests = new TalliedCounter({ name: 'penstock_http_requests_total', help: 'HTTP requests by route and status', labelNames: ['route', 'status'], registers });
    this.timeToFirstToken = new Histogram({ name: 'gen_ai_server_time_to_first_token_seconds', help: 'From the request to its first token', labelNames: ['model'], buckets: SECONDS_BUCKETS, registers });
    this.duration = new Histogram({ name: 'gen_ai_server_request_duration_seconds', help: 'From the request to the end of its answer', labelNames: ['model'], buckets: SECONDS_BUCKETS, registers });
    this.timePerToken = new Histogram({ name: 'gen_ai_server_time_per_output_token_seconds', help: 'Of complete streams, the mean time per token after the first one', labelNames: ['model'], buckets: TOKEN_SECONDS_BUCKETS, registers });
    this.promptLength = new Histogram({ name: 'penstock_prompt_tokens', help: 'Tokens of prompts, of requests that were answered: longer ones cost more before they become an incident', labelNames: ['model'], buckets: PROMPT_BUCKETS, registers });
    this.ends = new TalliedCounter({ name: 'penstock_model_requests_total', help: 'Requests to models by how they ended: completed, or the code of their error', labelNames: ['model', 'code'], registers });
    this.tokens = new TalliedCounter({ name: 'penstock_tokens_total', help: 'Tokens of prompts and answers; those of prompts that an engine had cached are cached as well', labelNames: ['model', 'type'], registers });
    const { inFlight } = this;
    new Gauge({ name: 'penstock_chat_requests_in_flight', help: 'Chat requests in work or waiting', registers, collect() { this.set(inFlight.value); } });
    const admissions = new TalliedCounter({ name: 'penstock_admissions_total', help: 'Leases by who granted them', labelNames: ['source'], registers });
    const bySource = { slots: admissions.of({ source: 'slots' }), router: admissions.of({ source: 'router' }), gateway: admissions.of({ source: 'gateway' }) };
    this.admissions = { inc: ({ source }) => bySource[source].inc() };
    this.retries = new Counter({ name: 'penstock_chat_retries_total', help: 'Second attempts before the first token', labelNames: ['reason'], registers });
    this.hedges = new Counter({ name: 'penstock_chat_hedges_total', help: 'Second attempts because the first token or the whole answer was late, by which attempt answered', labelNames: ['winner'], registers });
    this.hedgeLoserSeconds = new Counter({ name: 'penstock_chat_hedge_loser_seconds_total', help: 'Time that attempts held a slot whose answer was not used', registers });
    new Gauge({ name: 'penstock_usage_spool_bytes', help: 'Bytes of usage on the disk', registers, collect() { this.set(usage.stats().bytes); } });
    new Gauge({ name: 'penstock_usage_unpublished', help: 'Settled requests that the event log has not confirmed', registers, collect() { this.set(usage.stats().unpublished); } });
  }

  countRequest(route: string, status: number): void {
    let ofRoute = this.requestTallies.get(route);
    // Routes and statuses are few.
    if (ofRoute === undefined) this.requestTallies.set(route, (ofRoute = new Map<number, Tally>()));
    let tally = ofRoute.get(status);
    if (tally === undefined) ofRoute.set(status, (tally = this.requests.of({ route, status: String(status) })));
    tally.inc();
  }

  /** The figures of one model; endpoints exist, so their names are bounded. */
  ofModel(endpoint: LabelledEndpoint): ModelMetrics {
    const model = modelLabel(endpoint);
    let metrics = this.models.get(model);
    if (metrics === undefined) {
      const ends = new Map<string, Tally>();
      const ended = (code: string): void => {
        let tally = ends.get(code);
        // Codes are those of the catalogue.
        if (tally === undefined) ends.set(code, (tally = this.ends.of({ model, code })));
        tally.inc();
      };
      metrics = { ended, timePerToken: this.timePerToken.labels(model), timeToFirstToken: this.timeToFirstToken.labels(model), duration: this.duration.labels(model), promptTokens: this.tokens.of({ model, type: 'prompt' }), completionTokens: this.tokens.of({ model, type: 'completion' }), cachedTokens: this.tokens.of({ model, type: 'cached' }), promptLength: this.promptLength.labels(model) };
      this.models.set(model, metrics);
    }
    return metrics;
  }
}

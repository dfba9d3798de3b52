import type { Clock, Logger, Timers } from '@penstock/kernel';
import type { ChatCompletionRequest } from '@penstock/contract-http';
import type { JsonDocument } from '@penstock/domain-serving';
import type { GatewayConfig } from '../gateway-config.js';
import type { GatewayMetrics } from '../gateway-metrics.js';
import type { RequestLimits } from '../limits/request-limits.js';
import type { ModelJob } from '../frame/model-work.js';
import type { AdmissionDesk } from './admission.js';
import type { ExchangeWatch } from './exchange-watch.js';
import type { RequestBook } from '../explain/request-book.js';
import type { HedgePolicy } from '../frame/hedge-policy.js';
import type { Hedge } from '../frame/hedge-race.js';
import type { LeaseBook } from './lease-book.js';
import type { RetryBudgets } from './retry-budget.js';
import type { ReplicaClients } from './replica-clients.js';

export const CHAT_PARTS = Symbol('chat parts');

/** What every chat request works with. */
export interface ChatParts {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly desk: AdmissionDesk;
  readonly leases: LeaseBook;
  readonly clients: ReplicaClients;
  readonly watch: ExchangeWatch;
  readonly metrics: GatewayMetrics;
  readonly limits: RequestLimits;
  /** What a heartbeat says while a request to the endpoint waits. */
  readonly loading: (endpointId: string) => string;
  readonly retries: RetryBudgets;
  readonly hedges: HedgePolicy;
  /** Second attempts of the newest requests that had one, for whoever asks why. */
  readonly hedged: RequestBook<Hedge>;
  readonly timers: Timers;
}

/** One chat request that was checked and may be worked on. */
export interface ChatJob extends ModelJob {
  readonly document: JsonDocument;
  readonly request: ChatCompletionRequest;
  /** Keeps this tenant's prefixes in the engine's cache apart from those of others. */
  readonly cacheSalt: string;
}

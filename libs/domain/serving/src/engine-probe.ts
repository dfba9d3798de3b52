import type { AdapterReport } from '@penstock/contract-commands';
import type { EngineKind } from '@penstock/contract-events';

/** How to reach one engine. */
export interface EngineTarget {
  readonly kind: EngineKind;
  readonly url: string;
  readonly servedModel: string;
}

/** Load of one engine at one moment, read from its metrics. */
export interface EngineTelemetry {
  /** Requests being worked on. */
  readonly running: number;
  /** Requests that wait inside the engine. */
  readonly waiting: number;
  /** 0 to 1; null where the engine does not say. */
  readonly kvCacheUsage: number | null;
  /** Counted since the engine started. */
  readonly promptTokensTotal: number;
  readonly completionTokensTotal: number;
  /** null, or left out, where the engine does not say how long tokens take. */
  readonly pace?: EnginePace | null;
  /** Tokens that its key-value cache holds; null, or left out, where the engine does not say. */
  readonly kvTokens?: number | null;
  /** null, or left out, for an engine without adapters. */
  readonly adapters?: EngineAdapters | null;
}

/** What an engine says of its LoRA adapters: see {@link AdapterReport}. */
export type EngineAdapters = Pick<AdapterReport, 'served' | 'active' | 'slots'>;

/** What routers and scalers need of it, as agents send it on. */
export function loadOf({ running, waiting, kvCacheUsage, promptTokensTotal, completionTokensTotal }: EngineTelemetry) {
  return { running, waiting, kvCacheUsage, promptTokensTotal, completionTokensTotal };
}

/** What gateways and routers are told of its adapters; undefined for an engine without. */
export function adapterReportOf(replica: Pick<AdapterReport, 'replicaId' | 'endpointId'>, { adapters }: EngineTelemetry, sentAtMs: number): AdapterReport | undefined {
  return adapters === undefined || adapters === null ? undefined : { replicaId: replica.replicaId, endpointId: replica.endpointId, sentAtMs, ...adapters };
}

/** How long tokens took, counted since the engine started. */
export interface EnginePace {
  /** Requests that got their first token, and the seconds that these took together. */
  readonly firstTokens: number;
  readonly firstTokenSeconds: number;
  /** Observations of the time between two tokens of a request, and their seconds together. */
  readonly tokenGaps: number;
  readonly tokenGapSeconds: number;
}

export type ProbeResult =
  /** `completionTokens` is 0 for a model that makes vectors. */
  | { readonly kind: 'answered'; readonly ms: number; readonly completionTokens: number }
  | { readonly kind: 'failed'; readonly reason: string };

/** Looks at an engine from outside. */
export interface EngineProbe {
  /** Health by a real generation of one token, or of one vector by a model that generates none: an engine's own health route is green while it hangs. */
  generate(target: EngineTarget, timeoutMs: number): Promise<ProbeResult>;
  /** Undefined when the engine did not answer in time or answered something else. */
  telemetry(target: EngineTarget, timeoutMs: number): Promise<EngineTelemetry | undefined>;
}

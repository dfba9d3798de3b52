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

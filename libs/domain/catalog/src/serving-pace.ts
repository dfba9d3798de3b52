import type { EndpointState } from './catalog-state.js';

/** Engine options that say something to the platform; no engine is started with them. */
export const platformEngineOptions = ['chunk_gap_timeout_ms', 'first_token_timeout_ms', 'hedge', 'kv_cache_tokens', 'kv_events_port', 'prefill_tokens_per_second', 'total_timeout_ms'] as const;

/** What an endpoint's settings say about one of its replicas; null where they say nothing. */
export interface ServingPace {
  /** Tokens of its KV cache: the engine option `kv_cache_tokens`. */
  readonly kvTokens: number | null;
  /** Tokens that its prefix cache keeps: those of the KV cache, where they are known or follow from the slots. */
  readonly cacheTokens: number | null;
  /** Tokens of a prompt that it computes in a second: the engine option `prefill_tokens_per_second`. */
  readonly prefillTokensPerSecond: number | null;
}

/** What the operator said about size and speed of the endpoint's replicas. */
export function servingPaceOf(endpoint: EndpointState | undefined): ServingPace {
  const given = (name: (typeof platformEngineOptions)[number]): number | null => {
    const value = endpoint?.engineOptions[name];
    return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null;
  };
  const kvTokens = given('kv_cache_tokens');
  // llama.cpp divides its cache among its slots, a context for each.
  const slotTokens = endpoint?.engine === 'llama.cpp' ? endpoint.serving.slotsPerReplica * endpoint.serving.contextTokens : null;
  return { kvTokens, cacheTokens: kvTokens ?? slotTokens, prefillTokensPerSecond: given('prefill_tokens_per_second') };
}

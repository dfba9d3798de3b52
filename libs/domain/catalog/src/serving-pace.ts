import type { EndpointState } from './catalog-state.js';

/** What an endpoint's settings say about one of its replicas; null where they say nothing. */
export interface ServingPace {
  /** Tokens of its KV cache: the engine option `kv_cache_tokens`. */
  readonly kvTokens: number | null;
  /** Tokens of a prompt that it computes in a second: the engine option `prefill_tokens_per_second`. */
  readonly prefillTokensPerSecond: number | null;
}

/** What the operator said about size and speed of the endpoint's replicas. */
export function servingPaceOf(endpoint: EndpointState | undefined): ServingPace {
  const given = (name: string): number | null => {
    const value = endpoint?.engineOptions[name];
    return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null;
  };
  return { kvTokens: given('kv_cache_tokens'), prefillTokensPerSecond: given('prefill_tokens_per_second') };
}

import type { QuotaSlice } from '@penstock/domain-access';
import type { NamedAsk } from './limit-fault.js';

const WINDOW_SECONDS = 60;

/**
 * OpenAI's `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` of the tightest limit of each kind, and the same as `RateLimit`
 * and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11.
 */
export function rateHeaders(asks: readonly NamedAsk[], slices: readonly QuotaSlice[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const policies: string[] = [];
  const states: string[] = [];
  for (const [unit, policy] of [['requests', 'rpm'], ['tokens', 'tpm']] as const) {
    const tightest = tightestOf(asks, slices, unit);
    if (tightest === undefined) continue;
    const { limit, remaining, resetMs } = tightest;
    headers[`x-ratelimit-limit-${unit}`] = String(limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(remaining);
    headers[`x-ratelimit-reset-${unit}`] = formatDuration(resetMs);
    policies.push(`"${policy}";q=${limit};w=${WINDOW_SECONDS}`);
    states.push(`"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`);
  }
  if (policies.length > 0) Object.assign(headers, { 'ratelimit-policy': policies.join(', '), ratelimit: states.join(', ') });
  return headers;
}

function tightestOf(asks: readonly NamedAsk[], slices: readonly QuotaSlice[], unit: NamedAsk['unit']): { limit: number; remaining: number; resetMs: number } | undefined {
  let tightest: { limit: number; remaining: number; resetMs: number } | undefined;
  for (const [index, ask] of asks.entries()) {
    const slice = slices[index];
    if (ask.unit !== unit || slice === undefined) continue;
    const remaining = Math.max(0, Math.floor(slice.remaining));
    if (tightest === undefined || remaining / ask.limit < tightest.remaining / tightest.limit) tightest = { limit: ask.limit, remaining, resetMs: slice.resetMs };
  }
  return tightest;
}

/** As Go writes durations, and OpenAI with it: `0s`, `120ms`, `8.64s`, `6m30s`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.ceil(ms));
  if (whole === 0) return '0s';
  if (whole < 1_000) return `${whole}ms`;
  const minutes = Math.floor(whole / 60_000);
  const seconds = (whole - minutes * 60_000) / 1_000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

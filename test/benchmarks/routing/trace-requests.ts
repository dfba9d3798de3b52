import { mixKeys } from '@penstock/domain-engine-model';
import type { PromptTrail } from '@penstock/domain-routing';
import type { TraceRequest } from '@penstock/testing-simulator';
import { numberIn, readTrace } from '../traces.js';

/** As the Mooncake traces cut their prompts, and so the block of the engines here. */
export const BLOCK_TOKENS = 512;

/** A request with what a router is told of its prompt. */
export interface RoutedRequest extends TraceRequest {
  readonly prompt: PromptTrail;
}

/** A trace with the beginnings that its prompts share. */
export function sharedPrefixTrace(name: string, modelTokensMax: number): readonly RoutedRequest[] {
  return readTrace(name).flatMap((row, index) => {
    const promptTokens = numberIn(row, 'input_tokens');
    const contents = blockIds(row['hash_ids'] ?? '').slice(0, Math.floor(promptTokens / BLOCK_TOKENS));
    return requestOf(String(index), numberIn(row, 't_ms'), promptTokens, numberIn(row, 'output_tokens'), contents, modelTokensMax);
  });
}

/** A trace of lengths alone: no prompt shares anything with another. */
export function distinctTrace(name: string, modelTokensMax: number): readonly RoutedRequest[] {
  return readTrace(name).flatMap((row, index) => {
    const promptTokens = numberIn(row, 'input_tokens');
    const contents = Array.from({ length: Math.floor(promptTokens / BLOCK_TOKENS) }, (_, block) => mixKeys(index, block));
    return requestOf(String(index), numberIn(row, 't_s') * 1_000, promptTokens, numberIn(row, 'output_tokens'), contents, modelTokensMax);
  });
}

function requestOf(id: string, arrivalMs: number, promptTokens: number, outputTokens: number, contents: readonly number[], modelTokensMax: number): RoutedRequest[] {
  if (promptTokens < 1 || outputTokens < 1 || promptTokens + outputTokens > modelTokensMax) return [];
  let parent = 0;
  const blocks = contents.map((content) => (parent = mixKeys(parent, content)));
  return [{ id, arrivalMs, promptTokens, outputTokens, contentKeys: contents, prompt: { tokens: promptTokens, blocks, session: null } }];
}

/** `0-3 7` stands for 0, 1, 2, 3 and 7. */
function blockIds(text: string): number[] {
  return text.split(' ').filter((run) => run !== '').flatMap((run) => {
    const [first = 0, last = first] = run.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
  });
}

/** The requests from `start` on, at most `count`, `speed` times as fast as they came. */
export function windowOf(requests: readonly RoutedRequest[], start: number, count: number, speed: number): readonly RoutedRequest[] {
  const chosen = requests.slice(start, start + count);
  const firstMs = chosen[0]?.arrivalMs ?? 0;
  return chosen.map((request) => ({ ...request, arrivalMs: (request.arrivalMs - firstMs) / speed }));
}

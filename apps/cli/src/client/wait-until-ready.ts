import { progressBody, type ProgressBody } from '@penstock/contract-http';
import { ProgressLine } from '../terminal/progress.js';
import type { ApiClient } from './api-client.js';

/** What became of a start that somebody waited for. */
export type StartOutcome = { readonly kind: 'ready'; readonly elapsedMs: number } | { readonly kind: 'failed'; readonly reason: string };

const PHASE_WORDS: Readonly<Record<string, string>> = { placed: 'placed on a node', pulling: 'pulling the artifacts', loading: 'loading into the engine', warming: 'warming up' };

/** Follows the start of an endpoint with a bar for pulls and a line for each phase, until it is ready or refused. */
export async function waitUntilReady(client: ApiClient, endpointId: string, waitMs: number): Promise<StartOutcome> {
  const startedMs = performance.now();
  const stop = AbortSignal.timeout(waitMs);
  const bar = new ProgressLine();
  try {
    for await (const raw of client.follow(`/admin/v1/progress?endpoint_id=${encodeURIComponent(endpointId)}`, stop)) {
      const step = progressBody.parse(raw);
      const outcome = show(step, bar, startedMs);
      if (outcome !== undefined) return outcome;
    }
    return { kind: 'failed', reason: 'the installation ended the progress stream; look at `penstock ps`' };
  } catch (error) {
    if (!stop.aborted) throw error;
    return { kind: 'failed', reason: `not ready after ${Math.round(waitMs / 1_000)} s; it goes on in the background: look at \`penstock ps\`` };
  } finally {
    bar.stop();
  }
}

function show(step: ProgressBody, bar: ProgressLine, startedMs: number): StartOutcome | undefined {
  const elapsed = `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`;
  if (step.kind === 'refused') return { kind: 'failed', reason: step.reason ?? 'no capacity' };
  if (step.kind === 'pull') {
    bar.update(step.file ?? 'artifact', step.completed_bytes ?? 0, step.total_bytes ?? undefined);
    return undefined;
  }
  bar.stop();
  if (step.phase === 'ready') return { kind: 'ready', elapsedMs: performance.now() - startedMs };
  if (step.phase === 'failed') return { kind: 'failed', reason: step.reason ?? 'the replica failed' };
  const words = PHASE_WORDS[step.phase ?? ''];
  if (words !== undefined) process.stderr.write(`${elapsed.padStart(7)}  ${words}\n`);
  return undefined;
}

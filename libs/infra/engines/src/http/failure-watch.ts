import { parsePrometheusText } from './prometheus-text.js';

/** Engines that are remembered; the one unseen longest goes first. */
const ENGINES_MAX = 1_024;
/** Triton counts under this reason what its model's process failed at, its death included, while every health route of it stays green. */
const BACKEND_FAILURES = /^nv_inference_request_failure\{[^}]*reason="BACKEND"[^}]*\}/;

/** Notices that an engine's own count of failures grew, which is a reason to look closer. */
export class FailureWatch {
  private readonly counts = new Map<string, { readonly total: number; readonly isKept: boolean }>();

  /** True when `metrics` count more failures than at the last look, or that look's finding was kept. */
  hasNew(url: string, metrics: string): boolean {
    const total = countOf(metrics);
    const before = this.counts.get(url);
    this.remember(url, { total, isKept: false });
    return total > (before?.total ?? 0) || before?.isKept === true;
  }

  /** Asks for another look next time, since the engine is not well. */
  keep(url: string): undefined {
    const known = this.counts.get(url);
    if (known !== undefined) this.remember(url, { ...known, isKept: true });
  }

  private remember(url: string, count: { readonly total: number; readonly isKept: boolean }): void {
    this.counts.delete(url);
    this.counts.set(url, count);
    const [oldest] = this.counts.keys();
    if (this.counts.size > ENGINES_MAX && oldest !== undefined) this.counts.delete(oldest);
  }
}

function countOf(metrics: string): number {
  const lines = metrics.split('\n').filter((line) => BACKEND_FAILURES.test(line));
  return parsePrometheusText(lines.map((line) => line.replace(BACKEND_FAILURES, 'failures')).join('\n') + '\n').reduce((sum, { value }) => sum + value, 0);
}

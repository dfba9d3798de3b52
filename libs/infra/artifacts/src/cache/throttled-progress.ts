import type { ArtifactProgress } from '@penstock/domain-serving';

const INTERVAL_MS = 250;

/** At most four reports a second for each file, and always the first and the last one. */
export function throttled(onProgress: ((progress: ArtifactProgress) => void) | undefined): (progress: ArtifactProgress) => void {
  const lastMs = new Map<string, number>();
  return (progress) => {
    const nowMs = performance.now();
    const isLast = progress.completedBytes === progress.totalBytes;
    if (!isLast && nowMs - (lastMs.get(progress.file) ?? Number.NEGATIVE_INFINITY) < INTERVAL_MS) return;
    lastMs.set(progress.file, nowMs);
    onProgress?.(progress);
  };
}

import type { RunningTransfer, SharedTransfers } from './shared-transfers.js';

interface Pull {
  readonly waiting: Set<() => void>;
  readonly bytes: number;
  readonly transfer: RunningTransfer;
}

/** What one node's disk keeps of artifacts: each is pulled once however many replicas wait for it, and the oldest unused go first. */
export class ArtifactStore {
  /** Least recently used first. */
  private readonly kept = new Map<string, number>();
  private readonly pulls = new Map<string, Pull>();

  constructor(private readonly nodeId: string, private readonly capacityBytes: number, private readonly networkBps: number, private readonly transfers: SharedTransfers) {}

  has(artifact: string): boolean {
    return this.kept.has(artifact);
  }

  get usedBytes(): number {
    return [...this.kept.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Calls `onThere` once the artifact lies on the disk, at once when it does already. Returns how to wait no longer. */
  fetch(artifact: string, bytes: number, onThere: () => void): () => void {
    if (this.kept.has(artifact)) {
      this.keep(artifact, bytes);
      onThere();
      return () => undefined;
    }
    const pull = this.pulls.get(artifact) ?? this.begin(artifact, bytes);
    pull.waiting.add(onThere);
    return () => {
      pull.waiting.delete(onThere);
      if (pull.waiting.size > 0 || this.pulls.get(artifact) !== pull) return;
      pull.transfer.cancel();
      this.pulls.delete(artifact);
    };
  }

  /** How far the pull of an artifact is; undefined when none is under way. */
  progressOf(artifact: string): { readonly completedBytes: number; readonly totalBytes: number } | undefined {
    const pull = this.pulls.get(artifact);
    return pull === undefined ? undefined : { completedBytes: Math.round(pull.bytes - pull.transfer.leftBytes()), totalBytes: Math.round(pull.bytes) };
  }

  /** A node that dies breaks its pulls off; what lies on the disk stays. */
  breakOff(): void {
    for (const pull of this.pulls.values()) pull.transfer.cancel();
    this.pulls.clear();
  }

  private begin(artifact: string, bytes: number): Pull {
    const waiting = new Set<() => void>();
    const transfer = this.transfers.start(this.nodeId, bytes, this.networkBps, () => {
      this.pulls.delete(artifact);
      this.keep(artifact, bytes);
      for (const onThere of waiting) onThere();
    });
    const pull = { waiting, bytes, transfer };
    this.pulls.set(artifact, pull);
    return pull;
  }

  private keep(artifact: string, bytes: number): void {
    this.kept.delete(artifact);
    this.kept.set(artifact, bytes);
    for (const oldest of this.kept.keys()) {
      if (this.usedBytes <= this.capacityBytes || oldest === artifact) break;
      this.kept.delete(oldest);
    }
  }
}

import { ReplicaAssignmentError, type DisruptionBudget, type DrivenNode, type GeometryDriver, type ReplicaAssignment, type ReplicaDriver, type ReplicaObservation, type RetireOutcome } from '@penstock/domain-lifecycle';
import type { Timers } from '@penstock/kernel';

/** How long each step of an imagined replica takes, in milliseconds of the given timers. */
export interface SimulatedTimes {
  readonly pullMs: number;
  readonly loadMs: number;
  readonly stopMs: number;
}

const TIMES: SimulatedTimes = { pullMs: 200, loadMs: 200, stopMs: 100 };

/** A fleet that is only imagined, in whatever time its timers keep: replicas pull, load, serve and end. */
export class SimulatedReplicaDriver implements ReplicaDriver {
  readonly kind = 'simulated';
  /** Set where the driver lays out GPUs. */
  mig: GeometryDriver | undefined;
  budgets: readonly DisruptionBudget[] = [];
  /** What `start` throws, for the next starts. */
  refuses: Error | undefined;
  /** True while disruption budgets hold every end. */
  isHeld = false;
  readonly started: ReplicaAssignment[] = [];
  private readonly known = new Map<string, DrivenNode>();
  private readonly observed = new Map<string, ReplicaObservation>();
  private readonly listeners = new Set<() => void>();

  constructor(private readonly timers: Timers, private readonly times: SimulatedTimes = TIMES, private readonly nodePrefix = 'node_sim') {}

  owns(nodeId: string): boolean {
    return nodeId.startsWith(this.nodePrefix);
  }

  isSynced(): boolean {
    return true;
  }

  nodes(): readonly DrivenNode[] {
    return [...this.known.values()];
  }

  replicas(): readonly ReplicaObservation[] {
    return [...this.observed.values()];
  }

  /** Adds a node, or says something else about one. */
  setNode(node: DrivenNode): void {
    this.known.set(node.report.nodeId, node);
    this.changed();
  }

  dropNode(nodeId: string): void {
    this.known.delete(nodeId);
    this.changed();
  }

  /** Says something else about a replica, as a failure or an operator does. */
  observe(replicaId: string, change: Partial<ReplicaObservation>): void {
    const before = this.observed.get(replicaId);
    if (before === undefined) return;
    this.observed.set(replicaId, { ...before, ...change });
    this.changed();
  }

  /** Takes it away without a word. */
  vanish(replicaId: string): void {
    this.observed.delete(replicaId);
    this.changed();
  }

  async start(assignment: ReplicaAssignment): Promise<void> {
    if (this.refuses !== undefined) throw this.refuses;
    const { replicaId, nodeId, acceleratorIds } = assignment;
    if (this.observed.has(replicaId)) return;
    const offered = this.known.get(nodeId)?.report.accelerators.map((accelerator) => accelerator.acceleratorId) ?? [];
    const missing = acceleratorIds.find((id) => !offered.includes(id));
    if (missing !== undefined) throw new ReplicaAssignmentError('node_lost', `${nodeId} has no accelerator ${missing}`);
    this.started.push(assignment);
    this.observed.set(replicaId, { replicaId, phase: 'pulling', url: null, blocked: null, end: null });
    this.timers.after(this.times.pullMs, () => this.observe(replicaId, { phase: 'loading' }));
    this.timers.after(this.times.pullMs + this.times.loadMs, () => this.observe(replicaId, { phase: 'serving', url: `http://127.0.0.1:8000/${replicaId}` }));
    this.changed();
  }

  async retire(replicaId: string): Promise<RetireOutcome> {
    if (!this.observed.has(replicaId)) return 'ending';
    if (this.isHeld) return 'held';
    this.observe(replicaId, { phase: 'ending' });
    this.timers.after(this.times.stopMs, () => this.vanish(replicaId));
    return 'ending';
  }

  async remove(replicaId: string): Promise<void> {
    this.vanish(replicaId);
  }

  async protect(budgets: readonly DisruptionBudget[]): Promise<void> {
    this.budgets = budgets;
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  counters(): Readonly<Record<string, number>> {
    return { starts: this.started.length };
  }

  /** What it imagines goes on: the next service over it finds everything as it is. */
  async close(): Promise<void> {
    this.listeners.clear();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

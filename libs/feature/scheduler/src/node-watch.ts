import { nodeHeartbeat, pullProgress, replicaTelemetry } from '@penstock/contract-commands';
import type { FleetState, NodeState } from '@penstock/domain-lifecycle';
import { isLiving } from '@penstock/domain-lifecycle';
import type { Clock, Signals, Subscription } from '@penstock/kernel';

interface Progress {
  readonly completedBytes: number;
  readonly file: string;
  readonly atMs: number;
}

/** Names that are not in the fleet are not remembered beyond this many, so that noise cannot fill the memory. */
const REMEMBERED_MAX = 50_000;

/** What the live signals of nodes and replicas said last. All times are this process's own, so clocks may differ. */
export class NodeWatch {
  private readonly heartbeatAtMs = new Map<string, number>();
  private readonly joined = new Map<string, { readonly joinedAtMs: number; readonly noticedAtMs: number }>();
  private readonly pulls = new Map<string, Progress>();
  private readonly running = new Map<string, number>();
  private readonly subscriptions: Subscription[] = [];

  constructor(private readonly clock: Clock, private readonly signals: Signals) {}

  async start(): Promise<void> {
    this.subscriptions.push(await this.signals.subscribe('tele.node.*', (data) => this.onHeartbeat(data)));
    this.subscriptions.push(await this.signals.subscribe('tele.pull.*', (data) => this.onPull(data)));
    this.subscriptions.push(await this.signals.subscribe('tele.replica.*', (data) => this.onTelemetry(data)));
  }

  /** Forgets what is not in the fleet any more, and notes when nodes were first seen to be up. */
  observe(fleet: FleetState): void {
    for (const node of fleet.nodes.values()) {
      if (node.status !== 'up' || this.joined.get(node.nodeId)?.joinedAtMs === node.joinedAtMs) continue;
      this.joined.set(node.nodeId, { joinedAtMs: node.joinedAtMs, noticedAtMs: this.clock.now() });
    }
    for (const nodeId of this.joined.keys()) if (fleet.nodes.get(nodeId)?.status !== 'up') this.joined.delete(nodeId);
    for (const nodeId of this.heartbeatAtMs.keys()) if (!fleet.nodes.has(nodeId)) this.heartbeatAtMs.delete(nodeId);
    for (const map of [this.pulls, this.running]) {
      for (const replicaId of map.keys()) if (!livesIn(fleet, replicaId)) map.delete(replicaId);
    }
  }

  /** Since when nothing was heard of a node, at the earliest since heartbeats could arrive. */
  silentSinceMs(node: NodeState, expectingSinceMs: number): number {
    return Math.max(expectingSinceMs, this.heartbeatAtMs.get(node.nodeId) ?? 0, this.joined.get(node.nodeId)?.noticedAtMs ?? 0);
  }

  /** When a pull last moved, as far as it was seen. */
  readonly pullMovedAtMs = (replicaId: string): number => this.pulls.get(replicaId)?.atMs ?? 0;

  /** Requests in the replica's engine, running and waiting; null when it did not say. */
  readonly runningOn = (replicaId: string): number | null => this.running.get(replicaId) ?? null;

  async close(): Promise<void> {
    await Promise.all(this.subscriptions.map((subscription) => subscription.close()));
  }

  private onHeartbeat(data: unknown): void {
    const parsed = nodeHeartbeat.safeParse(data);
    if (parsed.success) remember(this.heartbeatAtMs, parsed.data.nodeId, this.clock.now());
  }

  private onPull(data: unknown): void {
    const parsed = pullProgress.safeParse(data);
    if (!parsed.success) return;
    const { replicaId, completedBytes, file } = parsed.data;
    const before = this.pulls.get(replicaId);
    if (before !== undefined && before.completedBytes === completedBytes && before.file === file) return;
    remember(this.pulls, replicaId, { completedBytes, file, atMs: this.clock.now() });
  }

  private onTelemetry(data: unknown): void {
    const parsed = replicaTelemetry.safeParse(data);
    if (parsed.success) remember(this.running, parsed.data.replicaId, parsed.data.running + parsed.data.waiting);
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size < REMEMBERED_MAX || map.has(key)) map.set(key, value);
}

function livesIn(fleet: FleetState, replicaId: string): boolean {
  const replica = fleet.replicas.get(replicaId);
  return replica !== undefined && isLiving(replica.phase);
}

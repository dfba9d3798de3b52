import type { PullProgress, ReplicaTelemetry } from '@penstock/contract-commands';
import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import { adapterReportOf, loadOf } from '@penstock/domain-serving';
import type { ReplicaDriverConfig } from './driver-config.js';
import type { ReplicaDriverPorts } from './driver-ports.js';

const TELEMETRY_TIMEOUT_MS = 2_000;
/** Engines that are asked at once; the next ones wait for these. */
const SAMPLES_AT_ONCE_MAX = 64;
/** Requests that gateways sent before they heard of the drain are still on their way for this long. */
const DRAIN_SETTLE_MS = 500;

interface Load {
  readonly atMs: number;
  readonly requests: number;
}

/** What the engines of a driver say of their load: sent on as live signals, and used to know when a drain is over. */
export class EngineWatch {
  private readonly loads = new Map<string, Load>();

  constructor(private readonly config: ReplicaDriverConfig, private readonly ports: ReplicaDriverPorts, private readonly fleet: LiveProjection<FleetState>) {}

  /** Pulls that a driver sees are told, so that nobody takes them for pulls that hang. */
  private tellPulls(): void {
    const { replicas } = this.fleet.state();
    for (const { replicaId, pull } of this.ports.driver.replicas()) {
      const replica = replicas.get(replicaId);
      if (pull === undefined || replica === undefined) continue;
      const body: PullProgress = { replicaId, endpointId: replica.endpointId, file: replica.modelVersionId, ...pull };
      this.ports.signals.publish(`tele.pull.${replicaId}`, body);
    }
  }

  async sample(): Promise<void> {
    this.tellPulls();
    const serving = [...this.fleet.state().replicas.values()].filter((replica) => (replica.phase === 'ready' || replica.phase === 'draining') && this.ports.driver.owns(replica.nodeId));
    const known = new Set(serving.map((replica) => replica.replicaId));
    for (const replicaId of this.loads.keys()) if (!known.has(replicaId)) this.loads.delete(replicaId);
    for (let first = 0; first < serving.length; first += SAMPLES_AT_ONCE_MAX) await Promise.all(serving.slice(first, first + SAMPLES_AT_ONCE_MAX).map((replica) => this.sampleOne(replica)));
  }

  /** True once a draining replica was seen without requests after the drain began, or its time is over. */
  isDrained(replica: ReplicaState): boolean {
    const drainingMs = this.ports.clock.now() - replica.phaseSinceMs;
    if (replica.url === null || drainingMs >= this.config.REPLICA_DRAIN_TIMEOUT_MS) return true;
    const load = this.loads.get(replica.replicaId);
    return load !== undefined && load.requests === 0 && load.atMs >= replica.phaseSinceMs + DRAIN_SETTLE_MS;
  }

  private async sampleOne({ replicaId, endpointId, url, engine, servedModel }: ReplicaState): Promise<void> {
    if (url === null || engine === null || servedModel === null) return;
    const { probe, clock, signals } = this.ports;
    const telemetry = await probe.telemetry({ kind: engine, url, servedModel }, TELEMETRY_TIMEOUT_MS);
    if (telemetry === undefined) return;
    const sentAtMs = clock.now();
    this.loads.set(replicaId, { atMs: sentAtMs, requests: telemetry.running + telemetry.waiting });
    const body: ReplicaTelemetry = { replicaId, endpointId, sentAtMs, ...loadOf(telemetry) };
    signals.publish(`tele.replica.${replicaId}`, body);
    const adapters = adapterReportOf({ replicaId, endpointId }, telemetry, sentAtMs);
    if (adapters !== undefined) signals.publish(`tele.adapters.${replicaId}`, adapters);
  }
}

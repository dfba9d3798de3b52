import type { NodeJoinedV2 } from '@penstock/contract-events';
import type { CatalogState } from '@penstock/domain-catalog';
import { isEnded, type FleetState, type ReplicaState } from '@penstock/domain-lifecycle';
import type { EngineRecord } from '@penstock/domain-serving';
import type { LiveProjection } from '@penstock/kernel';
import { MigWorker } from './mig-worker.js';
import { planStart } from './start-plan.js';
import { ReplicaSupervisor, type SupervisorParts } from './replica-supervisor.js';

/** Agents act each for its own node. */
const SPANS_NODES = 'An agent starts engines on its own node only; a replica over several nodes needs the Kubernetes driver.';

export interface NodeReconcilerParts extends SupervisorParts {
  readonly fleet: LiveProjection<FleetState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly report: NodeJoinedV2;
}

/**
 * Makes what runs on this node what the log says it should be. Everything is decided from the two projections and from what
 * exists here, so it may stop anywhere and start again.
 */
export class NodeReconciler {
  private readonly supervisors = new Map<string, ReplicaSupervisor>();
  private readonly mig: MigWorker;
  private isLeaving = false;

  constructor(private readonly parts: NodeReconcilerParts) {
    this.mig = new MigWorker({ driver: parts.ports.mig, reporter: parts.reporter, logger: parts.logger });
  }

  get replicaIds(): readonly string[] {
    return [...this.supervisors.keys()];
  }

  /** Takes over engines of an earlier agent whose replicas are still wanted, and ends the others. Call it once, before the first reconciliation. */
  async adoptSurvivors(): Promise<void> {
    for (const record of this.parts.memory.records()) await this.adoptOne(record);
  }

  readonly reconcile = async (): Promise<void> => {
    if (this.isLeaving) return;
    await this.rejoinIfLost();
    await this.mig.reconcile(this.parts.report, this.parts.fleet.state());
    const { replicas } = this.parts.fleet.state();
    for (const [replicaId, supervisor] of this.supervisors) {
      const replica = replicas.get(replicaId);
      const isWanted = replica !== undefined && !isEnded(replica.phase);
      if (!supervisor.isAlive && !(isWanted && supervisor.hasReportedEnd)) this.supervisors.delete(replicaId);
      else if (!isWanted) void supervisor.end();
    }
    for (const replica of replicas.values()) if (replica.nodeId === this.parts.memory.nodeId && !isEnded(replica.phase)) await this.reconcileOne(replica);
  };

  /** Does not wait: an engine that hangs must not hold up the others. */
  sampleTelemetry(): void {
    for (const supervisor of this.supervisors.values()) {
      supervisor.sampleTelemetry().catch((error: unknown) => this.parts.logger.error({ err: error, replicaId: supervisor.replicaId }, 'telemetry failed'));
    }
  }

  /** Drains and stops every replica, each within `timeoutMs`. */
  async leave(timeoutMs: number): Promise<void> {
    this.isLeaving = true;
    await Promise.all([...this.supervisors.values()].map(async (supervisor) => {
      await this.parts.reporter.replica(supervisor.replicaId, { kind: 'start-drain', reason: 'the node leaves' });
      await supervisor.drain(timeoutMs);
    }));
  }

  /** Takes notice of nothing any more, as after a crash. */
  detach(): void {
    this.isLeaving = true;
    for (const supervisor of this.supervisors.values()) supervisor.detach();
  }

  /** Ends every engine at once. */
  async endAll(): Promise<void> {
    this.isLeaving = true;
    await Promise.all([...this.supervisors.values()].map((supervisor) => supervisor.end()));
  }

  /** Leaves engines running for the next agent. */
  async abandonAll(): Promise<void> {
    this.isLeaving = true;
    await Promise.all([...this.supervisors.values()].map((supervisor) => supervisor.abandon()));
  }

  private async adoptOne(record: EngineRecord): Promise<void> {
    const { fleet, memory, ports, logger } = this.parts;
    const { replicaId } = record;
    const process = await ports.drivers.find((driver) => driver.kind === record.kind)?.adopt(record).catch((error: unknown) => {
      logger.warn({ err: error, replicaId }, 'an engine of an earlier agent cannot be taken over');
      return undefined;
    });
    if (process === undefined) return memory.forget(replicaId);
    const replica = fleet.state().replicas.get(replicaId);
    // Only a replica that was ready has a warm engine; an interrupted start begins again.
    const isWanted = replica !== undefined && (replica.phase === 'ready' || replica.phase === 'draining') && replica.url === process.url;
    logger.info({ replicaId, isWanted }, isWanted ? 'engine of an earlier agent taken over' : 'engine of an earlier agent ended: its replica is not wanted any more');
    if (!isWanted) {
      await process.kill();
      return memory.forget(replicaId);
    }
    const supervisor = ReplicaSupervisor.adopt(replica, record.kind, process, this.parts);
    this.supervisors.set(replicaId, supervisor);
    await this.holdArtifacts(replica, supervisor);
  }

  /** Keeps the files of an adopted engine from eviction. They are in the cache, so nothing is downloaded. */
  private async holdArtifacts(replica: ReplicaState, supervisor: ReplicaSupervisor): Promise<void> {
    const plan = planStart(replica, 'warming', this.parts.catalog.state(), { node: this.parts.report, geometries: this.parts.fleet.state().geometries }, this.parts.config.AGENT_DATA_DIR);
    if (plan === undefined || plan.pull.files.length === 0) return;
    const artifact = await this.parts.ports.artifacts.pull({ files: plan.pull.files, sources: [] }).catch(() => undefined);
    if (artifact !== undefined) supervisor.keep(artifact);
  }

  private async rejoinIfLost(): Promise<void> {
    const { fleet, memory, report, reporter, logger } = this.parts;
    const node = fleet.state().nodes.get(memory.nodeId);
    if (node?.status === 'up') return;
    logger.info({ nodeId: memory.nodeId, reason: node?.statusReason ?? null }, 'node joins');
    await reporter.join(await this.mig.refresh(report));
  }

  private async reconcileOne(replica: ReplicaState): Promise<void> {
    const { reporter, catalog, report, config, fleet } = this.parts;
    const supervisor = this.supervisors.get(replica.replicaId);
    const isHere = supervisor?.isAlive === true;
    // The log knows more than the projection has shown so far.
    if (supervisor?.hasReportedEnd === true) return;
    switch (replica.phase) {
      case 'ready':
        // Neither an engine nor a start: it died while no agent watched.
        if (!isHere) await reporter.replica(replica.replicaId, { kind: 'fail', onlyInPhase: 'ready', code: 'engine_exited', reason: 'the engine was gone when the agent started again' });
        return;
      case 'draining':
        if (supervisor !== undefined && isHere) void supervisor.drain();
        else await reporter.replica(replica.replicaId, { kind: 'stop', reason: 'drained: its engine does not run' });
        return;
      case 'placed':
      case 'pulling':
      case 'loading':
      case 'warming': {
        if (replica.members.length > 1) return void (await reporter.replica(replica.replicaId, { kind: 'fail', code: 'engine_missing', reason: SPANS_NODES }));
        const plan = isHere ? undefined : planStart(replica, replica.phase, catalog.state(), { node: report, geometries: fleet.state().geometries }, config.AGENT_DATA_DIR);
        if (plan !== undefined) this.supervisors.set(replica.replicaId, ReplicaSupervisor.start(plan, this.parts));
        return;
      }
      default:
        return;
    }
  }
}

import type { PlacementDecidedV2, PlacementRefusedV2 } from '@penstock/contract-events';
import type { CatalogState } from '@penstock/domain-catalog';
import { endpointPlacementDecider, endpointPlacementRef, isLiving, nodeDecider, nodeRef, replicaDecider, replicaRef, sameRefusal, type FleetState } from '@penstock/domain-lifecycle';
import type { CommitmentBook, PlacementPlan, PlannedDrain, TenantTiers } from '@penstock/domain-placement';
import type { ScalingState } from '@penstock/domain-scaling';
import type { Causation, Clock, IdSource, LiveProjection, Logger } from '@penstock/kernel';
import { buildPlacementInput, PLACEMENTS_PER_RUN_MAX } from './build-placement-input.js';
import type { PromiseKeeper } from './commitments/promise-keeper.js';
import type { SchedulerConfig } from './config.js';
import type { FleetWriter } from './fleet-writer.js';
import type { NodeWatch } from './node-watch.js';
import type { PeerWatch } from './peer-watch.js';
import type { MigDesk } from './mig-desk.js';
import type { PlanWatch } from './plan-watch.js';
import { findStuckReplicas } from './stuck-replicas.js';

export interface ReconcilerParts {
  readonly config: SchedulerConfig;
  readonly fleet: LiveProjection<FleetState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly scaling: LiveProjection<ScalingState>;
  readonly book: LiveProjection<CommitmentBook>;
  readonly tiers: LiveProjection<TenantTiers>;
  readonly promises: PromiseKeeper;
  readonly writer: FleetWriter;
  readonly nodes: NodeWatch;
  readonly peers: PeerWatch;
  readonly plans: PlanWatch;
  readonly geometries: MigDesk;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
}

/**
 * Compares wanted with living replicas and does the next steps. It decides from nothing but what the log and live signals say,
 * so it may be stopped anywhere and goes on from there; that includes moves, since a successor names whom it replaces.
 *
 * Two schedulers never give the same memory away twice: before a replica is placed, its placement is appended to the one
 * ledger of the fleet with the expected version that the plan was made on. The plan counts everything in the ledger whose
 * replica has not ended; ending is final, so an old view of it only counts too much, and a placement that this view does
 * not know makes the append fail. What stands in the ledger and was not placed yet (the writer died in between) is placed
 * by whichever scheduler runs next: the replica's own version makes that happen once.
 */
export class FleetReconciler {
  constructor(private readonly parts: ReconcilerParts) {}

  readonly reconcile = async (): Promise<void> => {
    const { peers, nodes, fleet, writer } = this.parts;
    peers.announce();
    nodes.observe(fleet.state());
    if (!peers.isActing() || !writer.isCaughtUp()) return;
    await this.placePending();
    await this.loseSilentNodes();
    await this.failReplicasOfLostNodes();
    await this.failStuckReplicas();
    await this.parts.promises.endOverdue();
    await this.parts.geometries.plan(fleet.state());
    // A plan is made on what the steps above led to; the change of the projection asks for the next run.
    if (writer.isCaughtUp()) await this.planAndPlace();
  };

  private async placePending(): Promise<void> {
    for (const entry of [...this.parts.fleet.state().ledger.pending.values()]) await this.place(entry);
  }

  private async place(entry: PlacementDecidedV2): Promise<void> {
    const causation = this.causationOf(entry.endpointId);
    await this.parts.writer.handle(replicaDecider, replicaRef(entry.replicaId), { kind: 'place', ...entry }, causation, `place-${entry.replicaId}`);
  }

  private async loseSilentNodes(): Promise<void> {
    const { config, clock, fleet, nodes, peers, writer, logger } = this.parts;
    if (!peers.isConnected()) return;
    for (const node of [...fleet.state().nodes.values()]) {
      if (node.status !== 'up') continue;
      const silentMs = clock.now() - nodes.silentSinceMs(node, peers.expectingSinceMs());
      if (silentMs <= config.HEARTBEAT_TIMEOUT_MS) continue;
      const reason = `no heartbeat for ${Math.round(silentMs / 1_000)} s`;
      logger.warn({ nodeId: node.nodeId, silentMs }, 'node lost');
      await writer.handle(nodeDecider, nodeRef(node.nodeId), { kind: 'lose', cause: 'missed-heartbeats', reason });
    }
  }

  private async failReplicasOfLostNodes(): Promise<void> {
    const { nodes, replicas } = this.parts.fleet.state();
    for (const replica of [...replicas.values()]) {
      // A gang ends with any of its nodes.
      const lost = replica.members.find((member) => nodes.get(member.nodeId)?.status !== 'up');
      if (!isLiving(replica.phase) || lost === undefined) continue;
      const reason = `its node ${replica.members.length > 1 ? `${lost.nodeId} ` : ''}is lost: ${nodes.get(lost.nodeId)?.statusReason ?? 'unknown node'}`;
      await this.parts.writer.handle(replicaDecider, replicaRef(replica.replicaId), { kind: 'fail', code: 'node_lost', reason }, undefined, `lost-${replica.replicaId}`);
    }
  }

  private async failStuckReplicas(): Promise<void> {
    const { config, clock, fleet, nodes, peers, writer } = this.parts;
    if (!peers.isConnected()) return;
    const input = { config, nowMs: clock.now(), expectingSinceMs: peers.expectingSinceMs(), pullMovedAtMs: nodes.pullMovedAtMs };
    for (const { replicaId, phase, code, reason } of findStuckReplicas(fleet.state(), input)) {
      await writer.handle(replicaDecider, replicaRef(replicaId), { kind: 'fail', onlyInPhase: phase, code, reason });
    }
  }

  private async planAndPlace(): Promise<void> {
    const { fleet, catalog, scaling, book, tiers, clock, nodes, plans } = this.parts;
    const ledgerSequence = fleet.state().ledger.lastSequence;
    const plan = await plans.plan(buildPlacementInput({
      fleet: fleet.state(), catalog: catalog.state(), scaling: scaling.state(), book: book.state(), tiers: tiers.state(), nowMs: clock.now(), runningOn: nodes.runningOn,
    }));
    for (const drain of plan.drains) await this.drain(drain);
    // An endpoint that gets a replica in this run is told what it lacks in the next one: the placement ends older refusals.
    const placed = new Set(plan.placements.map((placement) => placement.endpointId));
    for (const refusal of plan.refusals) if (!placed.has(refusal.endpointId)) await this.tellRefusal(refusal);
    await this.claimAndPlace(plan, ledgerSequence);
  }

  private async claimAndPlace(plan: PlacementPlan, ledgerSequence: number): Promise<void> {
    const { ids, writer, logger } = this.parts;
    const entries = plan.placements.slice(0, PLACEMENTS_PER_RUN_MAX).map((placement) => ({ replicaId: ids.next('rep'), ...placement }));
    const first = entries[0];
    if (first === undefined) return;
    if (!(await writer.claim(entries, ledgerSequence, this.causationOf(first.endpointId)))) {
      logger.info({}, 'another scheduler wrote to the ledger first; planning again');
      return;
    }
    for (const entry of entries) {
      logger.info({ replicaId: entry.replicaId, endpointId: entry.endpointId, nodeIds: entry.members.map((member) => member.nodeId), why: entry.reason.summary }, 'replica placed');
      await this.place(entry);
    }
  }

  private async drain({ replicaId, endpointId, reason }: PlannedDrain): Promise<void> {
    await this.parts.writer.handle(replicaDecider, replicaRef(replicaId), { kind: 'start-drain', reason }, this.causationOf(endpointId), `drain-${replicaId}`);
  }

  private async tellRefusal(refusal: PlacementRefusedV2): Promise<void> {
    const told = this.parts.fleet.state().refusals.get(refusal.endpointId);
    if (told !== undefined && sameRefusal(told, refusal)) return;
    await this.parts.writer.handle(endpointPlacementDecider, endpointPlacementRef(refusal.endpointId), { kind: 'refuse', refusal, repeat: told === undefined }, this.causationOf(refusal.endpointId));
  }

  /** Placements follow from the decision of the autoscaler that wanted them. */
  private causationOf(endpointId: string): Causation {
    const wanted = this.parts.scaling.state().wanted.get(endpointId);
    if (wanted !== undefined) return { correlationId: wanted.correlationId, causationId: wanted.eventId };
    const id = this.parts.ids.next('cmd');
    return { correlationId: id, causationId: id };
  }
}

import type { CatalogState } from '@penstock/domain-catalog';
import { isEnded, isLiving, replicaDecider, replicaRef, ReplicaAssignmentError, type DisruptionBudget, type FleetState, type ReplicaCommand, type ReplicaObservation, type ReplicaState } from '@penstock/domain-lifecycle';
import type { ScalingState } from '@penstock/domain-scaling';
import type { LiveProjection, Logger } from '@penstock/kernel';
import type { ReplicaDriverConfig } from './driver-config.js';
import type { ReplicaDriverPorts } from './driver-ports.js';
import { Elapsed } from './elapsed.js';
import type { EngineWatch } from './engine-watch.js';
import type { FleetFacts } from './fleet-facts.js';
import { nextStep, type ReplicaStep } from './next-step.js';
import { planAssignment } from './plan-assignment.js';

export interface ReplicaControllerParts {
  readonly config: ReplicaDriverConfig;
  readonly ports: ReplicaDriverPorts;
  readonly fleet: LiveProjection<FleetState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly scaling: LiveProjection<ScalingState>;
  readonly facts: FleetFacts;
  readonly engines: EngineWatch;
  readonly logger: Logger;
  /** Asks for a reconciliation, since a warm-up came to an end. */
  readonly onSettled: () => void;
}

/** Steps of different replicas depend on nothing of each other; this many are taken at a time. */
const STEPS_AT_ONCE_MAX = 16;

/** Makes what a driver runs what the log says it should be. It decides from the projections and from what is there, so it may stop anywhere. */
export class ReplicaController {
  private readonly missing: Elapsed;
  private readonly blocked: Elapsed;
  private readonly unknown: Elapsed;
  private readonly warmUps = new Map<string, Promise<void>>();
  private protectedBy = '';

  constructor(private readonly parts: ReplicaControllerParts) {
    this.missing = new Elapsed(parts.ports.clock);
    this.blocked = new Elapsed(parts.ports.clock);
    this.unknown = new Elapsed(parts.ports.clock);
  }

  get warmingUp(): number {
    return this.warmUps.size;
  }

  async reconcile(): Promise<void> {
    const { driver } = this.parts.ports;
    const { replicas } = this.parts.fleet.state();
    const seen = new Map(driver.replicas().map((observation) => [observation.replicaId, observation]));
    const unready = new Set(driver.nodes().filter((node) => !node.isReady).map((node) => node.report.nodeId));
    await this.protect();
    // What runs on a node that does not answer is not known; the loss of the node decides for its replicas.
    const own = [...replicas.values()].filter((replica) => isLiving(replica.phase) && driver.owns(replica.nodeId) && !unready.has(replica.nodeId));
    for (let first = 0; first < own.length; first += STEPS_AT_ONCE_MAX) {
      const chunk = own.slice(first, first + STEPS_AT_ONCE_MAX);
      await Promise.all(chunk.map((replica) => this.quietly(replica.replicaId, () => this.reconcileOne(replica, seen.get(replica.replicaId)))));
    }
    for (const { replicaId, phase } of seen.values()) {
      const replica = replicas.get(replicaId);
      // The placement of something unknown may be on its way to this process.
      const unknownMs = this.unknown.of(replicaId, replica === undefined);
      const isUnwanted = replica === undefined ? unknownMs >= this.parts.config.VANISHED_GRACE_MS : isEnded(replica.phase);
      if (phase !== 'ending' && isUnwanted) await this.quietly(replicaId, () => driver.remove(replicaId));
    }
    const isWanted = (replicaId: string): boolean => replicas.has(replicaId);
    this.missing.keepOnly((replicaId) => own.some((replica) => replica.replicaId === replicaId));
    this.blocked.keepOnly(isWanted);
    this.unknown.keepOnly((replicaId) => seen.has(replicaId));
  }

  /** One replica that cannot be helped now must not hold up the others; the next run tries again. */
  private async quietly(replicaId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => this.parts.logger.warn({ err: error, replicaId }, 'a step failed; the next run tries again'));
  }

  private async reconcileOne(replica: ReplicaState, seen: ReplicaObservation | undefined): Promise<void> {
    const { config, engines } = this.parts;
    const step = nextStep(replica, seen, {
      missingMs: this.missing.of(replica.replicaId, seen === undefined),
      vanishedGraceMs: config.VANISHED_GRACE_MS,
      blockedMs: this.blocked.of(replica.replicaId, seen?.blocked !== null && seen?.blocked !== undefined),
      blockedGraceMs: config.BLOCKED_GRACE_MS,
      isDrained: replica.phase === 'draining' && engines.isDrained(replica),
    });
    await this.take(step, replica);
  }

  private async take(step: ReplicaStep, replica: ReplicaState): Promise<void> {
    const { driver } = this.parts.ports;
    switch (step.kind) {
      case 'wait':
        return;
      case 'start':
        return this.start(replica);
      case 'warm-up':
        return this.beginWarmUp(replica, step.url);
      case 'retire':
        if ((await driver.retire(replica.replicaId)) === 'held') this.parts.logger.info({ replicaId: replica.replicaId }, 'a disruption budget holds the end of a drained replica');
        return;
      default:
        return this.say(replica.replicaId, step);
    }
  }

  private async start(replica: ReplicaState): Promise<void> {
    const assignment = planAssignment(replica, this.parts.catalog.state());
    if (assignment === undefined) return;
    try {
      await this.parts.ports.driver.start(assignment);
    } catch (error) {
      if (!(error instanceof ReplicaAssignmentError)) throw error;
      return this.say(replica.replicaId, { kind: 'fail', code: error.code, reason: error.message });
    }
    // Said after the fact: whoever crashes in between finds it there and goes on.
    await this.say(replica.replicaId, { kind: 'advance', phase: 'pulling' });
  }

  private async beginWarmUp(replica: ReplicaState, url: string): Promise<void> {
    const { replicaId } = replica;
    if (this.warmUps.has(replicaId)) return;
    if (replica.phase !== 'warming') await this.say(replicaId, { kind: 'advance', phase: 'warming' });
    const task = this.quietly(replicaId, () => this.warmUp(replica, url)).finally(() => {
      this.warmUps.delete(replicaId);
      this.parts.onSettled();
    });
    this.warmUps.set(replicaId, task);
  }

  private async warmUp(replica: ReplicaState, url: string): Promise<void> {
    const { config, ports, catalog } = this.parts;
    const assignment = planAssignment(replica, catalog.state());
    if (assignment === undefined) return;
    const { engine, modelName, slots, contextTokens } = assignment;
    const loadedMs = ports.clock.now();
    const result = await ports.probe.generate({ kind: engine, url, servedModel: modelName }, config.WARM_UP_TIMEOUT_MS);
    if (result.kind === 'failed') return this.say(replica.replicaId, { kind: 'fail', onlyInPhase: 'warming', code: 'warm_up_failed', reason: result.reason });
    // Pull and load happen inside one container: together they are the time since the placement.
    const timings = { pullMs: 0, loadMs: Math.max(0, loadedMs - replica.placedAtMs), warmUpMs: result.ms };
    await this.say(replica.replicaId, { kind: 'mark-ready', url, engine, servedModel: modelName, slots, contextTokens, timings });
  }

  private async say(replicaId: string, command: ReplicaCommand): Promise<void> {
    const outcome = await this.parts.facts.say(replicaDecider, replicaRef(replicaId), command);
    if (outcome.kind === 'refused') this.parts.logger.info({ replicaId, command: command.kind, reason: outcome.refusal.message }, 'the replica moved on meanwhile');
  }

  /**
   * Of each endpoint, all wanted replicas but one have to stay whatever an operator drains. What the scheduler itself drains is
   * decided: while it does, no more have to stay than would without.
   */
  private async protect(): Promise<void> {
    const { ports, catalog, scaling, fleet, logger } = this.parts;
    const replicas = Map.groupBy(fleet.state().replicas.values(), (replica) => replica.endpointId);
    const budgets: DisruptionBudget[] = [];
    for (const { endpointId, status } of catalog.state().endpoints.values()) {
      const wanted = status === 'active' ? (scaling.state().wanted.get(endpointId)?.replicas ?? 0) : 0;
      if (wanted === 0) continue;
      const own = replicas.get(endpointId) ?? [];
      const isDraining = own.some((replica) => replica.phase === 'draining');
      budgets.push({ endpointId, availableMin: isDraining ? Math.min(wanted - 1, own.filter((replica) => replica.phase === 'ready').length) : wanted - 1 });
    }
    const content = JSON.stringify(budgets);
    if (content === this.protectedBy) return;
    await ports.driver.protect(budgets).then(
      () => {
        this.protectedBy = content;
      },
      (error: unknown) => logger.warn({ err: error }, 'disruption budgets could not be set; the next run tries again'),
    );
  }
}

import { isLiving, migGeometryDecider, migGeometryRef, GeometryStepRefused, stepsLeft, type FleetState, type MigCommand, type GeometryDriver, type MigGeometryState } from '@penstock/domain-lifecycle';
import type { LiveProjection, Logger } from '@penstock/kernel';
import type { ReplicaDriverPorts } from './driver-ports.js';
import type { FleetFacts } from './fleet-facts.js';

export interface GeometryControllerParts {
  readonly ports: ReplicaDriverPorts;
  readonly fleet: LiveProjection<FleetState>;
  readonly facts: FleetFacts;
  readonly logger: Logger;
  /** Asks for a reconciliation, since a step came to an end. */
  readonly onSettled: () => void;
}

type Change = NonNullable<MigGeometryState['change']>;

/**
 * Takes the steps of planned MIG changes, one after the other on each GPU. A step is told after it was taken, and taking one
 * again changes nothing, so that whoever comes after a crash goes on between any two.
 */
export class GeometryController {
  private readonly busy = new Set<string>();

  constructor(private readonly parts: GeometryControllerParts) {}

  /** Begins what can be begun; steps take seconds, and nobody waits for them here. */
  reconcile(): void {
    const { ports, fleet, logger, onSettled } = this.parts;
    const { mig } = ports.driver;
    if (mig === undefined) return;
    const ready = new Set(ports.driver.nodes().filter((node) => node.isReady).map((node) => node.report.nodeId));
    for (const geometry of fleet.state().geometries.values()) {
      const { acceleratorId, nodeId, change } = geometry;
      if (change === null || !ports.driver.owns(nodeId) || !ready.has(nodeId) || this.busy.has(acceleratorId)) continue;
      this.busy.add(acceleratorId);
      void this.advance(geometry, change, mig)
        .catch((error: unknown) => logger.warn({ err: error, acceleratorId }, 'a MIG step failed; the next run tries again'))
        .finally(() => {
          this.busy.delete(acceleratorId);
          onSettled();
        });
    }
  }

  private async advance(geometry: MigGeometryState, change: Change, mig: GeometryDriver): Promise<void> {
    const { nodeId, acceleratorId } = geometry;
    const { changeId } = change;
    const [step] = stepsLeft(change, geometry.instances);
    const replica = this.parts.fleet.state().replicas.get(change.forReplicaId);
    if (step === undefined) return this.say({ kind: 'end-change', nodeId, acceleratorId, changeId, outcome: 'done', reason: `${change.steps.length} steps taken` });
    if (replica === undefined || !isLiving(replica.phase)) return this.say({ kind: 'end-change', nodeId, acceleratorId, changeId, outcome: 'abandoned', reason: `${change.forReplicaId} does not need it any more` });
    const { kind, profile, start } = step;
    if (kind === 'destroy' && this.isHeld(acceleratorId, profile, start)) return;
    // What only the node's report names is not in the history of the GPU yet, and nothing can be said to be gone that never was.
    const known = geometry.instances.find((instance) => instance.profile === profile && instance.start === start);
    if (known !== undefined) await this.say({ kind: 'note-created', nodeId, acceleratorId, changeId: null, instance: known });
    try {
      const { uuid } = await mig.take({ ...step, nodeId, acceleratorId });
      await this.say(kind === 'create' ? { kind: 'note-created', nodeId, acceleratorId, changeId, instance: { profile, start, uuid } } : { kind: 'note-destroyed', nodeId, acceleratorId, changeId, profile, start });
    } catch (error) {
      if (!(error instanceof GeometryStepRefused)) throw error;
      await this.say({ kind: 'end-change', nodeId, acceleratorId, changeId, outcome: 'failed', reason: error.message });
    }
  }

  /** Whether a replica that lives still has the instance, or is on its way to it. */
  private isHeld(acceleratorId: string, profile: string, start: number): boolean {
    const { replicas, ledger } = this.parts.fleet.state();
    const living = [...replicas.values()].filter((replica) => isLiving(replica.phase));
    return [...living, ...ledger.pending.values()].some(({ mig, members }) => mig?.profile === profile && mig.start === start && members.some((member) => member.acceleratorIds.includes(acceleratorId)));
  }

  private async say(command: MigCommand): Promise<void> {
    const outcome = await this.parts.facts.say(migGeometryDecider, migGeometryRef(command.acceleratorId), command);
    if (outcome.kind === 'refused') this.parts.logger.info({ acceleratorId: command.acceleratorId, command: command.kind, reason: outcome.refusal.message }, 'the geometry moved on meanwhile');
  }
}

import type { MigStepFact, NodeJoinedV2 } from '@penstock/contract-events';
import { isEnded, migGeometryDecider, migGeometryRef, type FleetState, type MigChange, type MigCommand, type MigGeometryState } from '@penstock/domain-lifecycle';
import type { MigDriver } from '@penstock/domain-serving';
import { EventLogUnavailableError, type Logger } from '@penstock/kernel';
import type { FleetReporter } from './fleet-reporter.js';

/** A change whose steps fail so often has failed: the tool refuses while a process still holds an instance, and lets go a little later. */
export const MIG_TRIES_MAX = 10;

export interface MigWorkerParts {
  readonly driver: MigDriver | undefined;
  readonly reporter: FleetReporter;
  readonly logger: Logger;
}

type Accelerator = NodeJoinedV2['accelerators'][number];

/**
 * Takes the steps of planned MIG changes on this node's GPUs, and tells each. Before a step it looks at what is there, so that an
 * agent that died between two steps, or between a step and its word, goes on without taking one twice.
 */
export class MigWorker {
  private readonly tries = new Map<string, number>();
  /** GPUs whose instances were compared with the log since the start. */
  private readonly compared = new Set<string>();

  constructor(private readonly parts: MigWorkerParts) {}

  async reconcile(report: NodeJoinedV2, fleet: FleetState): Promise<void> {
    for (const accelerator of report.accelerators) {
      if (accelerator.mig?.isEnabled !== true || accelerator.device === null) continue;
      const geometry = fleet.geometries.get(accelerator.acceleratorId);
      if (geometry !== undefined) await this.reconcileOne(report.nodeId, accelerator, accelerator.device, geometry, fleet);
    }
  }

  /** The report with the instances that are there now, for a node that joins again. */
  async refresh(report: NodeJoinedV2): Promise<NodeJoinedV2> {
    const { driver } = this.parts;
    if (driver === undefined) return report;
    const accelerators = await Promise.all(report.accelerators.map(async (accelerator) => {
      if (accelerator.mig?.isEnabled !== true || accelerator.device === null) return accelerator;
      const instances = await driver.list(accelerator.device).catch(() => accelerator.mig?.instances ?? []);
      return { ...accelerator, mig: { isEnabled: true, instances: instances.map((instance) => ({ ...instance })) } };
    }));
    return { ...report, accelerators };
  }

  private async reconcileOne(nodeId: string, { acceleratorId }: Accelerator, device: string, geometry: MigGeometryState, fleet: FleetState): Promise<void> {
    const on = { nodeId, acceleratorId };
    if (!this.compared.has(acceleratorId)) await this.compare(on, device, geometry);
    const { change } = geometry;
    if (change === null) return;
    const replica = fleet.replicas.get(change.forReplicaId);
    if (replica === undefined || isEnded(replica.phase)) {
      return this.say(on, { kind: 'end-change', ...on, changeId: change.changeId, outcome: 'abandoned', reason: `${change.forReplicaId} does not need it any more` });
    }
    try {
      for (const step of change.steps) await this.take(step, on, device, change.changeId);
      await this.say(on, { kind: 'end-change', ...on, changeId: change.changeId, outcome: 'done', reason: `${change.steps.length} steps taken` });
      this.tries.delete(change.changeId);
    } catch (error) {
      // The log is away: nothing is wrong with the step, and it is told once the log is back.
      if (error instanceof EventLogUnavailableError) throw error;
      await this.failed(on, change, error instanceof Error ? error.message : String(error));
    }
  }

  /** What is there and the log does not know, and the reverse, as after somebody else changed it. */
  private async compare(on: { readonly nodeId: string; readonly acceleratorId: string }, device: string, geometry: MigGeometryState): Promise<void> {
    const present = await this.parts.driver?.list(device).catch(() => undefined);
    if (present === undefined) return;
    for (const { profile, start } of geometry.instances) {
      if (!present.some((one) => one.profile === profile && one.start === start)) await this.say(on, { kind: 'note-destroyed', ...on, changeId: null, profile, start });
    }
    for (const instance of present) await this.say(on, { kind: 'note-created', ...on, changeId: null, instance });
    this.compared.add(on.acceleratorId);
  }

  private async take(step: MigStepFact, on: { readonly nodeId: string; readonly acceleratorId: string }, device: string, changeId: string): Promise<void> {
    const { driver } = this.parts;
    if (driver === undefined) throw new Error('this agent cannot change MIG instances');
    const { profile, start } = step;
    const find = async () => (await driver.list(device)).find((one) => one.profile === profile && one.start === start);
    if (step.kind === 'destroy') {
      if ((await find()) !== undefined) await driver.destroy(device, { profile, start });
      return this.say(on, { kind: 'note-destroyed', ...on, changeId, profile, start });
    }
    if ((await find()) === undefined) await driver.create(device, { profile, start });
    const instance = await find();
    if (instance === undefined) throw new Error(`${profile} at slice ${start} was made and is not there`);
    return this.say(on, { kind: 'note-created', ...on, changeId, instance });
  }

  private async failed(on: { readonly nodeId: string; readonly acceleratorId: string }, change: MigChange, reason: string): Promise<void> {
    const tries = (this.tries.get(change.changeId) ?? 0) + 1;
    this.tries.set(change.changeId, tries);
    this.parts.logger.warn({ ...on, changeId: change.changeId, tries, reason }, 'a step of a MIG change failed');
    if (tries < MIG_TRIES_MAX) return;
    this.tries.delete(change.changeId);
    await this.say(on, { kind: 'end-change', ...on, changeId: change.changeId, outcome: 'failed', reason });
    await this.parts.reporter.replica(change.forReplicaId, { kind: 'fail', onlyInPhase: 'placed', code: 'start_timeout', reason: `its MIG instance could not be made: ${reason}` });
  }

  private say({ acceleratorId }: { readonly acceleratorId: string }, command: MigCommand): Promise<void> {
    return this.parts.reporter.tell(migGeometryDecider, migGeometryRef(acceleratorId), command);
  }
}

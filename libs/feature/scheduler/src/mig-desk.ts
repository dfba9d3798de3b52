import { isLiving, isStarting, migGeometryDecider, migGeometryRef, type FleetState, type MigCommand, type MigGeometryState, type ReplicaState } from '@penstock/domain-lifecycle';
import { migGeometryLike, stepsToMake, type LiveInstance } from '@penstock/domain-placement';
import type { Logger } from '@penstock/kernel';
import type { FleetWriter } from './fleet-writer.js';

/** The change that makes the instance of a replica; one for each replica, so that planning it twice changes nothing. */
export function changeIdOf(replicaId: string): string {
  return `mig-${replicaId}`;
}

/**
 * Plans changes of MIG geometry. The ledger has given a slice of a GPU to one replica before; here follows how the instance comes
 * to be: idle instances that are in the way go, then it is made. The agent takes the steps and tells each. Where a replica that
 * still runs is in the way, the change waits for its end.
 */
export class MigDesk {
  constructor(private readonly writer: FleetWriter, private readonly logger: Logger) {}

  async plan(fleet: FleetState): Promise<void> {
    const holders = holdersOf(fleet);
    const planned = new Set<string>();
    for (const replica of [...fleet.replicas.values()]) {
      const [acceleratorId] = replica.acceleratorIds;
      if (replica.mig === null || acceleratorId === undefined || !isStarting(replica.phase) || planned.has(acceleratorId)) continue;
      if (await this.planOne(replica, acceleratorId, fleet, holders.get(acceleratorId) ?? [])) planned.add(acceleratorId);
    }
  }

  /** True when a change of this GPU is under way after it. */
  private async planOne(replica: ReplicaState, acceleratorId: string, fleet: FleetState, holders: readonly LiveInstance[]): Promise<boolean> {
    const node = fleet.nodes.get(replica.nodeId);
    const accelerator = node?.accelerators.find((one) => one.acceleratorId === acceleratorId);
    const geometry = accelerator === undefined ? undefined : migGeometryLike(accelerator.type, accelerator.usableBytes);
    if (replica.mig === null || node?.status !== 'up' || geometry === undefined) return false;
    const { profile, start } = replica.mig;
    const state = fleet.geometries.get(acceleratorId);
    if (state === undefined || state.instances.some((one) => one.profile === profile && one.start === start)) return false;
    if (state.change !== null) return true;
    const changeId = changeIdOf(replica.replicaId);
    if (state.lastEnd?.changeId === changeId) return false;
    const steps = stepsToMake(geometry, { gpuId: acceleratorId, instances: withHolders(state, holders) }, { profile, start });
    if (steps === undefined) return false;
    const reason = `${replica.replicaId} needs ${profile} at slice ${start}; ${steps.length - 1} idle instances are in its way`;
    this.logger.info({ acceleratorId, nodeId: node.nodeId, changeId, steps: steps.length }, 'MIG change planned');
    const change: MigCommand = { kind: 'plan-change', nodeId: node.nodeId, acceleratorId, changeId, steps: [...steps], forReplicaId: replica.replicaId, reason };
    const outcome = await this.writer.handle(migGeometryDecider, migGeometryRef(acceleratorId), change, undefined, `plan-${changeId}`);
    return outcome.kind === 'done';
  }
}

/** Instances that living replicas and decided placements hold, by accelerator. */
function holdersOf(fleet: FleetState): ReadonlyMap<string, readonly LiveInstance[]> {
  const holders = new Map<string, LiveInstance[]>();
  const living = [...fleet.replicas.values()].filter((replica) => isLiving(replica.phase));
  for (const { mig, members, replicaId } of [...living, ...fleet.ledger.pending.values()]) {
    const acceleratorId = members[0]?.acceleratorIds[0];
    if (mig !== null && acceleratorId !== undefined) holders.set(acceleratorId, [...(holders.get(acceleratorId) ?? []), { ...mig, replicaId }]);
  }
  return holders;
}

function withHolders({ instances }: MigGeometryState, holders: readonly LiveInstance[]): readonly LiveInstance[] {
  return instances.map(({ profile, start }) => ({ profile, start, replicaId: holders.find((one) => one.profile === profile && one.start === start)?.replicaId ?? null }));
}

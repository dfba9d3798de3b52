import type { AcceleratorBody, InstanceBody, NodeBody, PlacementBody } from './audited-bodies.js';
import { instanceBytes, migProblem, startsOf } from './mig-rules.js';

interface Hold {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly bytes: number;
  readonly milli: number;
  readonly mig: InstanceBody | null;
  /** It holds several accelerators, which are its alone. */
  readonly isGroup: boolean;
}

/** Whether what an endpoint holds counts. */
type Counts = (endpointId: string) => boolean;

const MILLI_PER_CORE = 1_000;
/** Placements count as taking part of the host up to this share before a refusal for want of it is believed. */
const HOST_SHARE = 0.5;

/** Who holds what of every accelerator and node, from the ledger's entries until replicas end. */
export class CapacityBook {
  private readonly holds = new Map<string, Hold[]>();
  private readonly hostHolds = new Map<string, { cpuMilli: number; memoryBytes: number }>();

  /** Notes a new placement and says what is wrong with it. */
  take(placement: PlacementBody, nodes: ReadonlyMap<string, NodeBody>): readonly string[] {
    const problems: string[] = [];
    this.change(placement, 1);
    for (const { nodeId, acceleratorIds } of placement.members) {
      const node = nodes.get(nodeId);
      if (node === undefined) {
        problems.push(`${placement.replicaId} was given ${nodeId}, which never joined`);
        continue;
      }
      const host = this.hostHolds.get(nodeId);
      if (host !== undefined && host.cpuMilli > node.cpuCores * MILLI_PER_CORE) problems.push(`${host.cpuMilli} thousandths of a core of ${nodeId} are given away, it has ${node.cpuCores} cores`);
      if (host !== undefined && host.memoryBytes > node.memoryBytes) problems.push(`${host.memoryBytes} bytes of host memory of ${nodeId} are given away, it has ${node.memoryBytes}`);
      for (const id of acceleratorIds) {
        const accelerator = node.accelerators.find((one) => one.acceleratorId === id);
        if (accelerator === undefined) problems.push(`${placement.replicaId} was given ${id}, which ${nodeId} does not have`);
        else problems.push(...this.problemsOf(nodeId, accelerator).map((problem) => `${problem}, after ${placement.replicaId}`));
      }
    }
    return problems;
  }

  release(placement: PlacementBody): void {
    this.change(placement, -1);
  }

  /** The replica that holds this instance; undefined when it is free. */
  holderOf(nodeId: string, acceleratorId: string, { profile, start }: InstanceBody): string | undefined {
    return this.of(nodeId, acceleratorId).find((hold) => hold.mig?.profile === profile && hold.mig.start === start)?.replicaId;
  }

  /** Whether `bytes` fit beside what shares the accelerator. Where somebody holds a part of its compute or a slice, it is not claimed that they do. */
  hasRoom(nodeId: string, { acceleratorId, usableBytes }: AcceleratorBody, bytes: number, counts: Counts): boolean {
    const holds = this.of(nodeId, acceleratorId).filter((hold) => counts(hold.endpointId));
    return holds.every((hold) => hold.mig === null && hold.milli === 0) && usableBytes - holds.reduce((sum, hold) => sum + hold.bytes, 0) >= bytes;
  }

  /** Whether an instance of the profile fits beside those that are held, wherever it begins. */
  hasSlices(nodeId: string, { acceleratorId, type }: AcceleratorBody, profile: string, bytes: number, counts: Counts): boolean {
    const holds = this.of(nodeId, acceleratorId).filter((hold) => counts(hold.endpointId));
    const held = holds.flatMap((hold) => hold.mig ?? []);
    if (held.length < holds.length || instanceBytes(type, profile) < bytes) return false;
    return startsOf(type, profile).some((start) => migProblem(type, [...held, { profile, start }]) === undefined);
  }

  /** Whether nobody holds anything of it. */
  isEmpty(nodeId: string, acceleratorId: string, counts: Counts): boolean {
    return !this.of(nodeId, acceleratorId).some((hold) => counts(hold.endpointId));
  }

  hostHasRoom({ nodeId, cpuCores, memoryBytes }: NodeBody): boolean {
    const host = this.hostHolds.get(nodeId);
    return host === undefined || (host.cpuMilli <= cpuCores * MILLI_PER_CORE * HOST_SHARE && host.memoryBytes <= memoryBytes * HOST_SHARE);
  }

  private problemsOf(nodeId: string, { acceleratorId, type, usableBytes, computeMilli }: AcceleratorBody): readonly string[] {
    const holds = this.of(nodeId, acceleratorId);
    const sliced = holds.filter((hold) => hold.mig !== null);
    const whole = holds.filter((hold) => hold.mig === null);
    const problems: string[] = [];
    const bytes = whole.reduce((sum, hold) => sum + hold.bytes, 0);
    const milli = whole.reduce((sum, hold) => sum + hold.milli, 0);
    if (bytes > usableBytes) problems.push(`${acceleratorId} has ${usableBytes} bytes and ${bytes} are given away`);
    if (milli > computeMilli) problems.push(`${acceleratorId} has ${computeMilli} thousandths of compute and ${milli} are given away`);
    const group = holds.find((hold) => hold.isGroup);
    if (group !== undefined && holds.length > 1) problems.push(`${acceleratorId} is part of the group of ${group.replicaId} and given away beside it`);
    if (sliced.length > 0 && whole.length > 0) problems.push(`${acceleratorId} is given away in slices and as a whole`);
    const illegal = migProblem(type, sliced.map((hold) => hold.mig as InstanceBody));
    if (sliced.length > 0 && illegal !== undefined) problems.push(`${acceleratorId}: ${illegal}`);
    for (const { mig, bytes: wanted, replicaId } of sliced) if (mig !== null && wanted > instanceBytes(type, mig.profile)) problems.push(`${replicaId} has ${wanted} bytes in ${mig.profile} of ${acceleratorId}, which has ${instanceBytes(type, mig.profile)}`);
    return problems;
  }

  private change(placement: PlacementBody, sign: 1 | -1): void {
    const { replicaId, endpointId, members, reservedBytes, computeMilli, cpuMilli, hostMemoryBytes, mig } = placement;
    const count = members.reduce((sum, member) => sum + member.acceleratorIds.length, 0);
    for (const { nodeId, acceleratorIds } of members) {
      const host = this.hostHolds.get(nodeId) ?? { cpuMilli: 0, memoryBytes: 0 };
      this.hostHolds.set(nodeId, { cpuMilli: host.cpuMilli + sign * cpuMilli, memoryBytes: host.memoryBytes + sign * hostMemoryBytes });
      for (const acceleratorId of acceleratorIds) {
        const others = this.of(nodeId, acceleratorId).filter((hold) => hold.replicaId !== replicaId);
        this.holds.set(`${nodeId}/${acceleratorId}`, sign === 1 ? [...others, { replicaId, endpointId, bytes: Math.floor(reservedBytes / Math.max(1, count)), milli: computeMilli, mig, isGroup: count > 1 }] : others);
      }
    }
  }

  private of(nodeId: string, acceleratorId: string): readonly Hold[] {
    return this.holds.get(`${nodeId}/${acceleratorId}`) ?? [];
  }
}

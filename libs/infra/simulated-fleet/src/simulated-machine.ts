import type { NodeJoinedV2 } from '@penstock/contract-events';
import { GeometryStepRefused } from '@penstock/domain-lifecycle';
import { canAdd, layoutProblems, profileOf, type MigInstance, type MigLayout } from '@penstock/domain-placement';
import { ArtifactStore } from './artifact-store.js';
import { reportOf, uuidOf, type Accelerator, type MachineSpec } from './fleet-description.js';
import type { SharedTransfers } from './shared-transfers.js';

const MEBIBYTE = 1_048_576;

/** A part of a machine that one engine uses: an accelerator, or a MIG instance of it. */
export interface Seat {
  readonly acceleratorId: string;
  readonly instance: MigInstance | null;
  readonly bytes: number;
}

/** One machine that does not exist: what it offers, what is held of it, and what lies on its disk. */
export class SimulatedMachine {
  readonly store: ArtifactStore;
  /** `gone` is a machine that its owner took back: it is not even unready any more. */
  power: 'on' | 'off' | 'gone' = 'on';
  /** Cut off: it runs on, and nobody can reach it. */
  isReachable = true;
  /** When its owner takes it back; undefined unless that was announced. */
  reclaimAtMs: number | undefined;
  private readonly layouts: (MigLayout | null)[];
  private readonly held = new Map<string, number>();
  private reported: NodeJoinedV2 | undefined;

  constructor(readonly spec: MachineSpec, transfers: SharedTransfers, private readonly agentVersion: string) {
    this.store = new ArtifactStore(spec.nodeId, spec.cacheBytes, spec.networkBps, transfers);
    this.layouts = Array.from({ length: spec.shape.gpus }, () => spec.layout);
  }

  get report(): NodeJoinedV2 {
    return (this.reported ??= reportOf(this.spec, this.layouts, this.agentVersion));
  }

  get answers(): boolean {
    return this.power === 'on' && this.isReachable;
  }

  accelerator(acceleratorId: string): Accelerator | undefined {
    return this.report.accelerators.find((accelerator) => accelerator.acceleratorId === acceleratorId);
  }

  hasInstance(acceleratorId: string, instance: MigInstance): boolean {
    return this.layoutOf(acceleratorId).some((one) => isSame(one, instance));
  }

  /** Takes the memory an engine allocates, or says which accelerator has too little, as CUDA does. */
  allocate(seats: readonly Seat[]): string | undefined {
    for (const seat of seats) {
      const total = this.bytesOf(seat);
      const free = total - (this.held.get(keyOf(seat)) ?? 0);
      if (seat.bytes > free) return `CUDA out of memory on ${keyOf(seat)}: ${seat.bytes} bytes wanted, ${free} of ${total} free`;
    }
    for (const seat of seats) this.held.set(keyOf(seat), (this.held.get(keyOf(seat)) ?? 0) + seat.bytes);
    return undefined;
  }

  release(seats: readonly Seat[]): void {
    for (const seat of seats) this.held.set(keyOf(seat), Math.max(0, (this.held.get(keyOf(seat)) ?? 0) - seat.bytes));
  }

  /** Everything that ran is gone, and so are MIG instances, which live no longer than the power; the disk stays. */
  loseMemory(): void {
    this.held.clear();
    this.store.breakOff();
    for (const [index, layout] of this.layouts.entries()) if (layout !== null) this.layouts[index] = [];
    this.reported = undefined;
  }

  /** Makes an instance, if it is not there. Throws {@link GeometryStepRefused} as the GPU's driver refuses. */
  createInstance(acceleratorId: string, instance: MigInstance): string {
    const { geometry } = this.spec;
    const index = this.indexOf(acceleratorId);
    const layout = this.layouts[index] ?? [];
    if (layout.some((one) => isSame(one, instance))) return uuidOf(acceleratorId, instance);
    if (geometry === undefined) throw new GeometryStepRefused(`${acceleratorId} cannot be partitioned`);
    if (this.layouts[index] === null && (this.held.get(acceleratorId) ?? 0) > 0) throw new GeometryStepRefused(`${acceleratorId} is in use as a whole: MIG mode changes only while it is idle`);
    if (!canAdd(geometry, layout, instance)) throw new GeometryStepRefused(`${instance.profile} at ${instance.start} cannot be made on ${acceleratorId}: ${layoutProblems(geometry, [...layout, instance])[0] ?? 'no room'}`);
    this.setLayout(index, [...layout, instance]);
    return uuidOf(acceleratorId, instance);
  }

  /** Takes an instance away, if it is there. Throws {@link GeometryStepRefused} while an engine uses it. */
  destroyInstance(acceleratorId: string, instance: MigInstance): void {
    const index = this.indexOf(acceleratorId);
    const layout = this.layouts[index] ?? [];
    if ((this.held.get(keyOf({ acceleratorId, instance })) ?? 0) > 0) throw new GeometryStepRefused(`${instance.profile} at ${instance.start} of ${acceleratorId} is in use by an engine`);
    if (layout.some((one) => isSame(one, instance))) this.setLayout(index, layout.filter((one) => !isSame(one, instance)));
  }

  private layoutOf(acceleratorId: string): MigLayout {
    return this.layouts[this.indexOf(acceleratorId)] ?? [];
  }

  private bytesOf({ acceleratorId, instance }: Seat): number {
    const layout = this.layouts[this.indexOf(acceleratorId)] ?? null;
    // A GPU in MIG mode takes no engine beside its instances.
    if (instance === null) return layout === null || layout.length === 0 ? (this.accelerator(acceleratorId)?.usableBytes ?? 0) : 0;
    if (!this.hasInstance(acceleratorId, instance) || this.spec.geometry === undefined) return 0;
    return (profileOf(this.spec.geometry, instance.profile)?.usableMib ?? 0) * MEBIBYTE;
  }

  private indexOf(acceleratorId: string): number {
    const index = this.report.accelerators.findIndex((accelerator) => accelerator.acceleratorId === acceleratorId);
    if (index < 0) throw new GeometryStepRefused(`${this.spec.nodeId} has no accelerator ${acceleratorId}`);
    return index;
  }

  private setLayout(index: number, layout: MigLayout): void {
    this.layouts[index] = [...layout].sort((one, other) => one.start - other.start);
    this.reported = undefined;
  }
}

function keyOf({ acceleratorId, instance }: Pick<Seat, 'acceleratorId' | 'instance'>): string {
  return instance === null ? acceleratorId : `${acceleratorId}/${instance.profile}@${instance.start}`;
}

function isSame(one: MigInstance, other: MigInstance): boolean {
  return one.profile === other.profile && one.start === other.start;
}

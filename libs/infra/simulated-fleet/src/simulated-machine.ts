import type { NodeJoinedV1 } from '@penstock/contract-events';
import { canAdd, layoutProblems, type MigInstance, type MigLayout } from '@penstock/domain-placement';
import { ArtifactStore } from './artifact-store.js';
import { acceleratorsOf, reportOf, type MachineSpec } from './fleet-description.js';
import type { SharedTransfers } from './shared-transfers.js';

/** A change of a GPU's MIG layout that the driver of a real GPU would refuse, with its reason. */
export class MigRefused extends Error {
  override readonly name = 'MigRefused';
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
  private readonly layouts: MigLayout[];
  private readonly held = new Map<string, number>();
  private reported: NodeJoinedV1 | undefined;

  constructor(readonly spec: MachineSpec, transfers: SharedTransfers, private readonly agentVersion: string) {
    this.store = new ArtifactStore(spec.nodeId, spec.cacheBytes, spec.networkBps, transfers);
    this.layouts = Array.from({ length: spec.shape.gpus }, () => spec.layout);
  }

  get report(): NodeJoinedV1 {
    return (this.reported ??= reportOf(this.spec, this.layouts, this.agentVersion));
  }

  accelerator(acceleratorId: string): NodeJoinedV1['accelerators'][number] | undefined {
    return this.report.accelerators.find((accelerator) => accelerator.acceleratorId === acceleratorId);
  }

  layoutOf(gpuIndex: number): MigLayout {
    return this.layouts[gpuIndex] ?? [];
  }

  /** Takes the memory an engine allocates, or says which accelerator has too little, as CUDA does. */
  allocate(acceleratorIds: readonly string[], bytes: number): string | undefined {
    const share = Math.floor(bytes / Math.max(1, acceleratorIds.length));
    for (const id of acceleratorIds) {
      const total = this.accelerator(id)?.memoryBytes ?? 0;
      const free = total - (this.held.get(id) ?? 0);
      if (share > free) return `CUDA out of memory on ${id}: ${share} bytes wanted, ${free} of ${total} free`;
    }
    for (const id of acceleratorIds) this.held.set(id, (this.held.get(id) ?? 0) + share);
    return undefined;
  }

  release(acceleratorIds: readonly string[], bytes: number): void {
    const share = Math.floor(bytes / Math.max(1, acceleratorIds.length));
    for (const id of acceleratorIds) this.held.set(id, Math.max(0, (this.held.get(id) ?? 0) - share));
  }

  /** Everything that ran is gone; the disk stays. */
  loseMemory(): void {
    this.held.clear();
    this.store.breakOff();
  }

  createInstance(gpuIndex: number, instance: MigInstance): void {
    const { geometry, nodeId } = this.spec;
    const layout = this.layoutOf(gpuIndex);
    if (geometry === undefined || !canAdd(geometry, layout, instance)) {
      const problem = geometry === undefined ? 'this GPU cannot be partitioned' : layoutProblems(geometry, [...layout, instance])[0];
      throw new MigRefused(`${instance.profile} at ${instance.start} cannot be made on GPU ${gpuIndex} of ${nodeId}: ${problem ?? 'no room'}`);
    }
    if (layout.length === 0 && this.isInUse(gpuIndex, [])) throw new MigRefused(`GPU ${gpuIndex} of ${nodeId} is in use as a whole: MIG mode can change only while it is idle`);
    this.setLayout(gpuIndex, [...layout, instance]);
  }

  destroyInstance(gpuIndex: number, instance: MigInstance): void {
    const layout = this.layoutOf(gpuIndex);
    const isThat = (one: MigInstance): boolean => one.profile === instance.profile && one.start === instance.start;
    if (!layout.some(isThat)) throw new MigRefused(`GPU ${gpuIndex} of ${this.spec.nodeId} has no ${instance.profile} at ${instance.start}`);
    if (this.isInUse(gpuIndex, [instance])) throw new MigRefused(`${instance.profile} at ${instance.start} on GPU ${gpuIndex} of ${this.spec.nodeId} is in use by an engine`);
    this.setLayout(gpuIndex, layout.filter((one) => !isThat(one)));
  }

  private isInUse(gpuIndex: number, layout: MigLayout): boolean {
    return acceleratorsOf(this.spec, gpuIndex, layout).some(({ acceleratorId }) => (this.held.get(acceleratorId) ?? 0) > 0);
  }

  private setLayout(gpuIndex: number, layout: MigLayout): void {
    this.layouts[gpuIndex] = [...layout].sort((one, other) => one.start - other.start);
    this.reported = undefined;
  }
}

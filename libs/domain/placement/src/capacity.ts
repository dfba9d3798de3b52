import type { PlacementAccelerator, PlacementNode, Reservation } from './placement-input.js';

/** Free memory of every accelerator of the nodes that are up, kept while a plan is made. */
export class Capacity {
  private readonly used = new Map<string, number>();
  private readonly holders = new Map<string, number>();

  constructor(readonly nodes: readonly PlacementNode[], reservations: readonly Reservation[]) {
    for (const reservation of reservations) this.reserve(reservation);
  }

  reserve(reservation: Reservation): void {
    const share = shareOf(reservation.reservedBytes, reservation.acceleratorIds.length);
    for (const acceleratorId of reservation.acceleratorIds) {
      const key = keyOf(reservation.nodeId, acceleratorId);
      this.used.set(key, (this.used.get(key) ?? 0) + share);
      this.holders.set(key, (this.holders.get(key) ?? 0) + 1);
    }
  }

  usedBytes(node: PlacementNode, accelerator: PlacementAccelerator): number {
    return this.used.get(keyOf(node.nodeId, accelerator.acceleratorId)) ?? 0;
  }

  /** May be negative when a node came back with less memory than was reserved on it, and is for an exclusive device that is held. */
  freeBytes(node: PlacementNode, accelerator: PlacementAccelerator): number {
    if (accelerator.isExclusive === true && this.holders.has(keyOf(node.nodeId, accelerator.acceleratorId))) return Number.NEGATIVE_INFINITY;
    return accelerator.memoryBytes - this.usedBytes(node, accelerator);
  }
}

/** Bytes of one of `count` accelerators that hold `bytes` together. */
export function shareOf(bytes: number, count: number): number {
  return Math.ceil(bytes / Math.max(1, count));
}

function keyOf(nodeId: string, acceleratorId: string): string {
  return `${nodeId}/${acceleratorId}`;
}

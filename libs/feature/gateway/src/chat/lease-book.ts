import { releaseLeases, renewLeases, type Lease } from '@penstock/contract-commands';
import type { Clock, CommandClient, Timers } from '@penstock/kernel';
import type { ReplicaOutcome } from '@penstock/domain-routing';
import { LentLease, type LentSlots } from './lent-slots.js';
import { OwnCircuits } from './own-circuits.js';

/** Leases are renewed this often, well before they expire. */
export const RENEW_INTERVAL_MS = 3_000;
/** Releases of one message, as its contract allows. */
const RELEASES_PER_MESSAGE = 1_000;
/** Releases that wait while the router is slow; older ones are dropped, since their leases expire by themselves. */
const RELEASES_WAITING_MAX = 20_000;
const RELEASE_TIMEOUT_MS = 2_000;
const RENEWALS_PER_MESSAGE = 1_000;

interface Release {
  readonly leaseId: string;
  readonly replicaId: string;
  readonly endpointId: string;
  readonly outcome: 'ok' | 'aborted' | 'engine-failed';
  readonly timedOut?: true;
}

/** The slots this gateway uses now, its own choices included: how many per replica, and what the router is told of them. */
export class LeaseBook {
  /** How requests ended at the replicas, for the choice of one while no router makes it. */
  readonly circuits = new OwnCircuits();
  private readonly held = new Map<string, { readonly lease: Lease; readonly sinceMs: number }>();
  private readonly inFlight = new Map<string, number>();
  private releases: Release[] = [];
  private isSending = false;
  private readonly stopRenewing: () => void;

  constructor(private readonly gatewayId: string, private readonly lent: LentSlots, private readonly ports: { readonly commands: CommandClient; readonly clock: Clock; readonly timers: Timers }) {
    this.stopRenewing = ports.timers.every(RENEW_INTERVAL_MS, () => this.renew(ports.clock.now() - RENEW_INTERVAL_MS));
  }

  /** Requests that this gateway has at the replica. */
  inFlightOf(replicaId: string): number {
    return this.inFlight.get(replicaId) ?? 0;
  }

  take(lease: Lease): void {
    if (!(lease instanceof LentLease)) {
      this.held.set(lease.leaseId, { lease, sinceMs: this.ports.clock.now() });
      this.lent.enter(lease.endpointId);
    }
    this.inFlight.set(lease.replicaId, this.inFlightOf(lease.replicaId) + 1);
  }

  /** Gives the slot back; call it once. The router hears of it together with all others that end while a message is on its way. */
  release(lease: Lease, outcome: ReplicaOutcome): void {
    const isLent = lease instanceof LentLease;
    if (!isLent && !this.held.delete(lease.leaseId)) return;
    const left = this.inFlightOf(lease.replicaId) - 1;
    if (left > 0) this.inFlight.set(lease.replicaId, left);
    else this.inFlight.delete(lease.replicaId);
    this.circuits.record(lease.replicaId, lease.leaseId, outcome, this.ports.clock.now());
    if (isLent) {
      this.lent.give(lease, outcome);
      return;
    }
    const { leaseId, replicaId, endpointId } = lease;
    this.lent.leave(endpointId);
    this.releases.push({ leaseId, replicaId, endpointId, ...(outcome === 'engine-timed-out' ? { outcome: 'engine-failed', timedOut: true } : { outcome }) });
    if (this.releases.length > RELEASES_WAITING_MAX) this.releases.splice(0, this.releases.length - RELEASES_WAITING_MAX);
    if (!this.isSending) void this.send();
  }

  /** Tells a router that has just come what is in flight. */
  renewAll(): void {
    void this.renew(Infinity);
  }

  stop(): void {
    this.stopRenewing();
  }

  private async send(): Promise<void> {
    this.isSending = true;
    // Everything that ends in the same turn of the event loop goes with the first message.
    await Promise.resolve();
    while (this.releases.length > 0) {
      const releases = this.releases.splice(0, RELEASES_PER_MESSAGE);
      // A lost release costs its slot until the lease expires, and nothing else.
      await this.ports.commands.send(releaseLeases, { releases }, { timeoutMs: RELEASE_TIMEOUT_MS }).catch(() => undefined);
    }
    this.isSending = false;
  }

  /** Renews the leases that were taken up to `dueMs`. */
  private async renew(dueMs: number): Promise<void> {
    const leases = [...this.held.values()].filter(({ sinceMs }) => sinceMs <= dueMs).map(({ lease }) => lease);
    for (let start = 0; start < leases.length; start += RENEWALS_PER_MESSAGE) {
      await this.ports.commands.send(renewLeases, { gatewayId: this.gatewayId, leases: leases.slice(start, start + RENEWALS_PER_MESSAGE) }, { timeoutMs: RELEASE_TIMEOUT_MS }).catch(() => undefined);
    }
  }
}

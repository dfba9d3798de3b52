import type { Clock, CommandClient, IdSource, Logger, Timers } from '@penstock/kernel';
import type { QuotaKind, QuotaSlice, QuotaTaken } from '@penstock/domain-access';
import { TenantQuota } from './tenant-quota.js';

/** One limit that a request needs some of. */
export interface QuotaAsk {
  /** Names the limit inside its organisation. */
  readonly key: string;
  readonly kind: QuotaKind;
  readonly limit: number;
  readonly amount: number;
}

/** What a request holds of its limits until it is settled, in the order of what it asked for. */
export interface QuotaHeld {
  readonly kind: 'held';
  readonly parts: readonly { readonly slice: QuotaSlice; readonly taken: QuotaTaken }[];
}

export type QuotaAnswer = QuotaHeld | { readonly kind: 'denied'; readonly askIndex: number; readonly slices: readonly QuotaSlice[] };

export interface QuotaPorts {
  readonly clock: Clock;
  readonly commands: CommandClient;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly timers: Timers;
}

/** How often a gateway reports what it used; authorities count on it. */
export const QUOTA_SYNC_INTERVAL_MS = 1_000;

/** The limits of all organisations as far as this gateway has borrowed of them. A request that finds enough here asks nobody. */
export class QuotaDesk {
  private readonly tenants = new Map<string, TenantQuota>();
  /** Of this process alone: a gateway that starts again knows nothing of what it held before. */
  private readonly borrowerId: string;
  private readonly stopSyncing: () => void;

  constructor(private readonly ports: QuotaPorts) {
    this.borrowerId = ports.ids.next('inst');
    this.stopSyncing = ports.timers.every(QUOTA_SYNC_INTERVAL_MS, () => this.syncAll());
  }

  /** Takes all or nothing; answers at once where enough was borrowed before. */
  take(organisationId: string, asks: readonly QuotaAsk[], signal: AbortSignal): QuotaHeld | Promise<QuotaAnswer> {
    return this.tenantOf(organisationId).take(asks, signal);
  }

  /** What is left of limits, after asking the authority; as far as this gateway knows where none answers. In the order of `asks`. */
  look(organisationId: string, asks: readonly QuotaAsk[]): Promise<readonly QuotaSlice[]> {
    return asks.length === 0 ? Promise.resolve([]) : this.tenantOf(organisationId).look(asks);
  }

  /** `actual` is what of each part was really used, by its index; what was only held is given back. */
  settle(held: QuotaHeld, actual: (index: number, reserved: number) => number): void {
    const nowMs = this.ports.clock.now();
    for (const [index, { slice, taken }] of held.parts.entries()) slice.settle(taken, actual(index, taken.amount), nowMs);
  }

  stop(): void {
    this.stopSyncing();
  }

  private tenantOf(organisationId: string): TenantQuota {
    let tenant = this.tenants.get(organisationId);
    if (tenant === undefined) this.tenants.set(organisationId, (tenant = new TenantQuota(organisationId, this.borrowerId, this.ports)));
    return tenant;
  }

  private syncAll(): void {
    const nowMs = this.ports.clock.now();
    for (const [organisationId, tenant] of this.tenants) {
      if (tenant.dropIdle(nowMs)) this.tenants.delete(organisationId);
      else tenant.sync();
    }
  }
}

import { syncQuota } from '@penstock/contract-commands';
import { QuotaBucket, type QuotaGrant } from '@penstock/domain-access';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import type { Clock, Timers } from '@penstock/kernel';
import type { z } from 'zod';
import type { OwnerLink } from '../owner-link.js';
import type { RouterMembers } from '../router-members.js';

type SyncCommand = z.output<typeof syncQuota.request>;
type SyncReply = z.input<typeof syncQuota.reply>;

/** A router that becomes the authority of an organisation only listens for so long: every gateway that borrowed reports within it. */
export const QUOTA_LEARNING_MS = 2_500;
/** Limits in use at once on one router. */
const BUCKETS_MAX = 200_000;
const SWEEP_INTERVAL_MS = 5_000;
const FORWARD_TIMEOUT_MS = 1_000;

export interface QuotaAuthorityParts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly members: RouterMembers;
  readonly link: OwnerLink;
}

interface Tenant {
  readonly knownSinceMs: number;
  readonly buckets: Map<string, QuotaBucket>;
  readonly sequences: Map<string, number>;
}

/** Lends the limits of organisations to gateways. Organisations are spread over the routers as endpoints are. */
export class QuotaAuthority {
  private readonly tenants = new Map<string, Tenant>();
  private bucketCount = 0;
  private readonly stopSweeping: () => void;

  constructor(private readonly parts: QuotaAuthorityParts) {
    this.stopSweeping = parts.timers.every(SWEEP_INTERVAL_MS, () => this.sweep());
    parts.members.onChange(() => this.dropForeign());
  }

  async sync(command: SyncCommand): Promise<HandlerOutcome<SyncReply>> {
    const forwarded = await this.parts.link.forward(syncQuota, command.organisationId, command, { timeoutMs: FORWARD_TIMEOUT_MS });
    if (forwarded.kind === 'replied') return forwarded.reply;
    if (forwarded.kind === 'here') return this.syncHere(command);
    return refused({ code: 'service_unavailable', message: 'No router can answer for the limits now. Ask again shortly.', retryAfterMs: 500 });
  }

  close(): void {
    this.stopSweeping();
  }

  private syncHere({ organisationId, gatewayId, sequence, buckets }: SyncCommand): HandlerOutcome<SyncReply> {
    const nowMs = this.parts.clock.now();
    const tenant = this.tenantOf(organisationId, nowMs);
    if (sequence <= (tenant.sequences.get(gatewayId) ?? -1)) return refused({ code: 'conflict', message: 'A newer report of this gateway was taken already.' });
    if (this.bucketCount + buckets.length > BUCKETS_MAX) return refused({ code: 'service_unavailable', message: `This router looks after ${BUCKETS_MAX} limits already. Add a router.`, retryAfterMs: 1_000 });
    tenant.sequences.set(gatewayId, sequence);
    const isLearning = nowMs - tenant.knownSinceMs < QUOTA_LEARNING_MS && nowMs - this.parts.members.changedAtMs < QUOTA_LEARNING_MS;
    const grants = buckets.map(({ key, kind, limit, ...report }): { key: string } & QuotaGrant => ({ key, ...this.bucketOf(tenant, key, kind, limit).sync(gatewayId, limit, report, nowMs, isLearning) }));
    return ok({ ownerId: this.parts.members.instanceId, isLearning, grants });
  }

  private tenantOf(organisationId: string, nowMs: number): Tenant {
    const found = this.tenants.get(organisationId);
    if (found !== undefined) return found;
    const tenant: Tenant = { knownSinceMs: nowMs, buckets: new Map(), sequences: new Map() };
    this.tenants.set(organisationId, tenant);
    return tenant;
  }

  private bucketOf(tenant: Tenant, key: string, kind: 'window' | 'held', limit: number): QuotaBucket {
    const found = tenant.buckets.get(key);
    if (found !== undefined) return found;
    const bucket = new QuotaBucket(kind, limit);
    tenant.buckets.set(key, bucket);
    this.bucketCount += 1;
    return bucket;
  }

  private sweep(): void {
    const nowMs = this.parts.clock.now();
    for (const [organisationId, tenant] of this.tenants) {
      for (const [key, bucket] of tenant.buckets) {
        bucket.advance(nowMs);
        if (!bucket.isIdle) continue;
        tenant.buckets.delete(key);
        this.bucketCount -= 1;
      }
      if (tenant.buckets.size === 0) this.tenants.delete(organisationId);
    }
  }

  /** What another router looks after now is none of this one's: should it come back, what happened meanwhile would be missing. */
  private dropForeign(): void {
    for (const [organisationId, tenant] of this.tenants) {
      if (this.parts.members.owns(organisationId)) continue;
      this.bucketCount -= tenant.buckets.size;
      this.tenants.delete(organisationId);
    }
  }
}

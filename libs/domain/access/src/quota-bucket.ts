/** `window`: amounts that count for a minute after their use. `held`: things held at the same time, such as requests in work. */
export type QuotaKind = 'window' | 'held';

/** An amount counts for this long after its use. */
export const QUOTA_WINDOW_MS = 60_000;
/** What a gateway has borrowed and does not renew comes back after this long. */
export const QUOTA_LEASE_MS = 10_000;
/** Uses are added up by the second. */
const BIN_MS = 1_000;
const WINDOW_BINS = QUOTA_WINDOW_MS / BIN_MS;
/** Beyond what waits, a gateway gets at most this share of what is left, divided by the gateways that ask. */
const HEADROOM_SHARE = 0.5;
/** When a slice is with other gateways, they bring back what they do not use within about this time. */
const IDLE_SLICE_RETURN_MS = 1_500;

/** What one gateway says about one bucket, in units of the limit. */
export interface QuotaReport {
  /** Borrowed and not used up; of a `held` bucket everything the gateway holds, in use or free. */
  readonly held: number;
  /** Everything used since the gateway knows the bucket; only ever grows. */
  readonly usedTotal: number;
  /** Of that, the last minute's: how an authority that takes over learns of it. */
  readonly recentUsed: number;
  /** Parts of earlier uses that were reserved and turned out not to be needed, by the bin they were counted in. */
  readonly refunds: readonly { readonly bin: number; readonly amount: number }[];
  /** The smallest amount that a waiting request lacks; 0 when none waits. */
  readonly need: number;
  /** What all waiting requests lack together. */
  readonly demand: number;
  /** What the gateway would like beyond, so that its next requests need not ask. */
  readonly headroom: number;
}

export interface QuotaGrant {
  readonly granted: number;
  /** Left over for everybody after this grant. */
  readonly available: number;
  /** The bin that what was reported as used now is counted in. */
  readonly bin: number;
  /** When the whole limit is free again, if nothing more is used. */
  readonly resetMs: number;
  /** When it makes sense to ask again for what was not granted. */
  readonly retryAfterMs: number;
  /** Gateways that share the bucket now. */
  readonly gateways: number;
}

interface Borrower {
  outstanding: number;
  usedTotal: number;
  expiresAtMs: number;
}

/**
 * The authority over one limit. What gateways borrowed counts as used until they say otherwise, and what they used counts for a
 * whole minute after they say so, so that all of them together never use more than the limit within any minute.
 */
export class QuotaBucket {
  private readonly borrowers = new Map<string, Borrower>();
  /** Used amounts by second. */
  private readonly bins = new Map<number, number>();

  constructor(readonly kind: QuotaKind, private limit: number) {}

  get isIdle(): boolean {
    return this.borrowers.size === 0 && this.bins.size === 0;
  }

  /** Takes a report in and answers with a grant. While `isLearning`, only takes in: others may hold what is not known yet. */
  sync(gatewayId: string, limit: number, report: QuotaReport, nowMs: number, isLearning = false): QuotaGrant {
    this.limit = limit;
    this.advance(nowMs);
    const bin = Math.floor(nowMs / BIN_MS);
    const known = this.borrowers.get(gatewayId);
    if (this.kind === 'window') {
      const used = known === undefined ? report.recentUsed : Math.max(0, report.usedTotal - known.usedTotal);
      this.use(bin, used);
      for (const refund of report.refunds) this.refund(refund.bin, refund.amount);
    }
    const borrower: Borrower = { outstanding: report.held, usedTotal: report.usedTotal, expiresAtMs: nowMs + QUOTA_LEASE_MS };
    this.borrowers.set(gatewayId, borrower);
    const free = Math.max(0, this.available());
    const gateways = this.gatewaysAt(nowMs);
    const granted = isLearning ? 0 : grantOf(report, free, gateways);
    borrower.outstanding += granted;
    if (borrower.outstanding === 0 && report.recentUsed === 0 && report.need === 0) this.borrowers.delete(gatewayId);
    return { granted, available: free - granted, bin, resetMs: this.resetMs(nowMs), retryAfterMs: this.retryAfterMs(report.need, free, nowMs), gateways };
  }

  /** Forgets uses that count no longer, and takes back what gateways that are gone had borrowed; they may have used it to the last moment. */
  advance(nowMs: number): void {
    for (const [gatewayId, borrower] of this.borrowers) {
      if (borrower.expiresAtMs > nowMs) continue;
      if (this.kind === 'window') this.use(Math.floor(borrower.expiresAtMs / BIN_MS), borrower.outstanding);
      borrower.outstanding = 0;
      // Remembered for as long as its uses count, so that one that comes back does not count them twice.
      if (borrower.expiresAtMs + QUOTA_WINDOW_MS <= nowMs) this.borrowers.delete(gatewayId);
    }
    const oldest = Math.floor(nowMs / BIN_MS) - WINDOW_BINS;
    for (const bin of this.bins.keys()) if (bin < oldest) this.bins.delete(bin);
  }

  private available(): number {
    let taken = 0;
    for (const used of this.bins.values()) taken += used;
    for (const { outstanding } of this.borrowers.values()) taken += outstanding;
    return this.limit - taken;
  }

  private gatewaysAt(nowMs: number): number {
    let count = 0;
    for (const { expiresAtMs } of this.borrowers.values()) if (expiresAtMs > nowMs) count += 1;
    return Math.max(1, count);
  }

  private use(bin: number, amount: number): void {
    if (amount > 0) this.bins.set(bin, (this.bins.get(bin) ?? 0) + amount);
  }

  private refund(bin: number, amount: number): void {
    const used = this.bins.get(bin);
    if (used !== undefined) this.bins.set(bin, Math.max(0, used - amount));
  }

  private resetMs(nowMs: number): number {
    const newest = Math.max(...this.bins.keys());
    return Number.isFinite(newest) ? freeAtMs(newest) - nowMs : 0;
  }

  private retryAfterMs(need: number, free: number, nowMs: number): number {
    if (need <= free) return 0;
    if (this.kind === 'held') return BIN_MS;
    let freed = free;
    for (const bin of [...this.bins.keys()].sort((one, other) => one - other)) {
      freed += this.bins.get(bin) ?? 0;
      if (freed >= need) return Math.max(1, freeAtMs(bin) - nowMs);
    }
    return IDLE_SLICE_RETURN_MS;
  }
}

/** What a bin holds counts until its last possible moment is a whole window ago. */
function freeAtMs(bin: number): number {
  return (bin + 1) * BIN_MS + QUOTA_WINDOW_MS;
}

function grantOf({ need, demand, headroom }: QuotaReport, free: number, gateways: number): number {
  if (free < need) return 0;
  const waiting = Math.min(demand, free);
  return waiting + Math.min(headroom, Math.floor(((free - waiting) * HEADROOM_SHARE) / gateways));
}

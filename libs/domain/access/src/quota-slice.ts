import { QUOTA_LEASE_MS, QUOTA_WINDOW_MS, type QuotaGrant, type QuotaKind, type QuotaReport } from './quota-bucket.js';

/** What was not used for so long goes back to the authority. */
const IDLE_RETURN_MS = 1_000;
const BIN_MS = 1_000;

/** The uses that travel to the authority in one report. */
interface UseBatch {
  state: 'open' | 'sent' | 'counted' | 'lost';
  bin: number;
  ownerId: string;
  /** What came back while the report was on its way. */
  refunded: number;
}

/** An amount taken from a slice. */
export interface QuotaTaken {
  readonly amount: number;
  /** The second in which it was taken. */
  readonly second: number;
  readonly batch: UseBatch;
}

/** What one gateway has borrowed of one limit, and what it did with it. */
export class QuotaSlice {
  private held = 0;
  private inUse = 0;
  private usedTotal = 0;
  private expiresAtMs = 0;
  private takenAtMs = -Infinity;
  private demanded = 0;
  private open: UseBatch = newBatch();
  private refunds = new Map<number, number>();
  private ownerId = '';
  private readonly bins = new Map<number, number>();
  private last: QuotaGrant = { granted: 0, available: Infinity, bin: 0, resetMs: 0, retryAfterMs: 0, gateways: 1 };

  constructor(readonly kind: QuotaKind, public limit: number) {}

  /** Whether there is anything that the authority must go on hearing of. */
  isIdle(nowMs: number): boolean {
    return this.held === 0 && this.inUse === 0 && this.refunds.size === 0 && this.recentUsed(nowMs) === 0;
  }

  /** Left of the limit as far as this gateway knows. */
  get remaining(): number {
    if (this.kind === 'held') return Math.max(0, Math.min(this.limit, this.last.available) + this.held - this.inUse);
    return Math.max(0, Math.min(this.limit, this.last.available + this.held));
  }

  get resetMs(): number {
    return this.last.resetMs;
  }

  get retryAfterMs(): number {
    return this.last.retryAfterMs;
  }

  /** Takes out of the slice; undefined when it holds too little or was not renewed. */
  take(amount: number, nowMs: number): QuotaTaken | undefined {
    if (nowMs >= this.expiresAtMs || this.free() < amount) return undefined;
    return this.count(amount, nowMs);
  }

  /** Takes by this gateway's share of the limit, while no authority is there to borrow from. */
  takeShare(amount: number, nowMs: number): QuotaTaken | undefined {
    const share = Math.max(1, Math.floor(this.limit / this.last.gateways));
    const used = this.kind === 'held' ? this.inUse : this.recentUsed(nowMs);
    if (used + amount > share) return undefined;
    this.held = Math.max(this.held, this.kind === 'held' ? this.inUse + amount : amount);
    return this.count(amount, nowMs);
  }

  /** Corrects what was taken to what it really took; of a `held` slice, gives it back. */
  settle(taken: QuotaTaken, actual: number, nowMs: number): void {
    if (this.kind === 'held') {
      this.inUse -= taken.amount;
      return;
    }
    const surplus = taken.amount - actual;
    if (surplus < 0) {
      this.held = Math.max(0, this.held + surplus);
      this.usedTotal -= surplus;
      this.note(-surplus, nowMs);
    } else if (surplus > 0) {
      this.giveBack(taken, surplus, nowMs);
    }
  }

  /** What to tell the authority now. `need` and `demand` are what waiting requests ask for. */
  report(need: number, demand: number, nowMs: number): { readonly report: QuotaReport; readonly batch: UseBatch } {
    if (nowMs >= this.expiresAtMs) this.held = this.kind === 'held' ? this.inUse : 0;
    if (demand === 0 && nowMs - this.takenAtMs >= IDLE_RETURN_MS) this.held = this.kind === 'held' ? this.inUse : 0;
    const batch = this.open;
    batch.state = 'sent';
    this.open = newBatch();
    const refunds = [...this.refunds].map(([bin, amount]) => ({ bin, amount }));
    this.refunds = new Map();
    const lacking = (amount: number): number => Math.max(0, amount - this.free());
    // A busy gateway borrows ahead what it used up between two reports.
    const headroom = demand === 0 && this.demanded === 0 ? 0 : Math.max(0, this.demanded - this.free());
    this.demanded = 0;
    return { report: { held: this.held, usedTotal: this.usedTotal, recentUsed: this.kind === 'held' ? this.inUse : this.recentUsed(nowMs), refunds, need: lacking(need), demand: lacking(demand), headroom }, batch };
  }

  /** The answer to a report that was sent at `sentAtMs`. */
  granted(grant: QuotaGrant, batch: UseBatch, ownerId: string, sentAtMs: number): void {
    this.held += grant.granted;
    this.last = grant;
    this.ownerId = ownerId;
    // Counted from before the report was sent, so that the authority never takes back what is still used here.
    this.expiresAtMs = sentAtMs + QUOTA_LEASE_MS;
    Object.assign(batch, { state: 'counted', bin: grant.bin, ownerId });
    if (batch.refunded > 0) this.queueRefund(batch, batch.refunded);
  }

  /** No answer came: whether the authority counted the uses is not known, so nothing of them is given back. */
  unanswered(batch: UseBatch): void {
    batch.state = 'lost';
  }

  private free(): number {
    return this.kind === 'held' ? this.held - this.inUse : this.held;
  }

  private count(amount: number, nowMs: number): QuotaTaken {
    this.takenAtMs = nowMs;
    this.demanded += amount;
    if (this.kind === 'held') {
      this.inUse += amount;
    } else {
      this.held -= amount;
      this.usedTotal += amount;
      this.note(amount, nowMs);
    }
    return { amount, second: Math.floor(nowMs / BIN_MS), batch: this.open };
  }

  private giveBack({ batch, second }: QuotaTaken, amount: number, nowMs: number): void {
    const noted = this.bins.get(second);
    if (noted !== undefined) this.bins.set(second, noted - amount);
    if (batch.state === 'open') {
      this.usedTotal -= amount;
      if (nowMs < this.expiresAtMs) this.held += amount;
    } else if (batch.state === 'sent') {
      batch.refunded += amount;
    } else if (batch.state === 'counted') {
      this.queueRefund(batch, amount);
    }
  }

  private queueRefund(batch: UseBatch, amount: number): void {
    if (batch.ownerId === this.ownerId) this.refunds.set(batch.bin, (this.refunds.get(batch.bin) ?? 0) + amount);
  }

  private note(amount: number, nowMs: number): void {
    const bin = Math.floor(nowMs / BIN_MS);
    this.bins.set(bin, (this.bins.get(bin) ?? 0) + amount);
  }

  private recentUsed(nowMs: number): number {
    const oldest = Math.floor((nowMs - QUOTA_WINDOW_MS) / BIN_MS);
    let used = 0;
    for (const [bin, amount] of this.bins) {
      if (bin < oldest) this.bins.delete(bin);
      else used += amount;
    }
    return Math.max(0, used);
  }
}

function newBatch(): UseBatch {
  return { state: 'open', bin: 0, ownerId: '', refunded: 0 };
}

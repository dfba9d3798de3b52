import { QUOTA_BUCKETS_MAX, syncQuota } from '@penstock/contract-commands';
import { QuotaSlice } from '@penstock/domain-access';
import { CommandFailedError, ServiceUnavailableError } from '@penstock/kernel';
import type { QuotaAnswer, QuotaAsk, QuotaHeld, QuotaPorts } from './quota-desk.js';

/** Requests of one organisation that may wait for its limits at once. */
const WAITERS_MAX = 5_000;
const SYNC_TIMEOUT_MS = 1_500;
/** A new authority only listens at first; a request waits so long for it to lend. */
const LEARNING_WAIT_MS = 5_000;
const LEARNING_RETRY_MS = 250;

interface Waiter {
  readonly asks: readonly QuotaAsk[];
  readonly sinceMs: number;
  readonly resolve: (answer: QuotaAnswer) => void;
}

type SyncOutcome = 'lent' | 'learning' | 'away';
type Report = ReturnType<QuotaSlice['report']>;

/** The limits of one organisation: what is borrowed, and the requests that wait for more. One report is on its way at a time. */
export class TenantQuota {
  private readonly slices = new Map<string, QuotaSlice>();
  private waiters: Waiter[] = [];
  private syncing: Promise<void> | undefined;
  private isAway = false;
  private sequence = 0;

  constructor(private readonly organisationId: string, private readonly borrowerId: string, private readonly ports: QuotaPorts) {}

  take(asks: readonly QuotaAsk[], signal: AbortSignal): QuotaHeld | Promise<QuotaAnswer> {
    const taken = this.tryTake(asks) ?? (this.isAway ? this.tryTake(asks, 'share') : undefined);
    if (taken !== undefined) return taken;
    if (this.isAway || this.waiters.length >= WAITERS_MAX || signal.aborted) return Promise.resolve(this.denial(asks));
    return new Promise((resolve) => {
      const waiter = { asks, sinceMs: this.ports.clock.now(), resolve };
      this.waiters.push(waiter);
      signal.addEventListener('abort', () => this.leave(waiter), { once: true });
      this.sync();
    });
  }

  /** True once nothing of the organisation is borrowed, used or waited for. */
  dropIdle(nowMs: number): boolean {
    if (this.syncing !== undefined || this.waiters.length > 0) return false;
    for (const [key, slice] of this.slices) if (slice.isIdle(nowMs)) this.slices.delete(key);
    return this.slices.size === 0;
  }

  sync(): void {
    if (this.syncing !== undefined) return;
    this.syncing = this.runSync().catch((error: unknown) => {
      this.ports.logger.error({ err: error, organisationId: this.organisationId }, 'limits could not be synchronised');
      for (const waiter of this.waiters.splice(0)) waiter.resolve(this.denial(waiter.asks));
    }).finally(() => {
      this.syncing = undefined;
    });
  }

  /** Asks the authority for news of these limits without taking anything. */
  async look(asks: readonly QuotaAsk[]): Promise<readonly QuotaSlice[]> {
    // A report that is on its way does not speak of slices that are opened now.
    await this.syncing;
    const slices = asks.map((ask) => this.openSlice(ask));
    this.sync();
    await this.syncing;
    return slices;
  }

  private async runSync(): Promise<void> {
    do {
      // Requests that arrive in the same turn of the event loop ask together.
      await Promise.resolve();
      const asked = new Set(this.waiters);
      const outcome = await this.exchange();
      this.isAway = outcome === 'away';
      this.serve(asked, outcome);
      if (outcome === 'learning' && this.waiters.length > 0) await new Promise<void>((resolve) => this.ports.timers.after(LEARNING_RETRY_MS, resolve));
    } while (this.waiters.length > 0);
  }

  private async exchange(): Promise<SyncOutcome> {
    const sentAtMs = this.ports.clock.now();
    this.sequence = Math.max(this.sequence + 1, sentAtMs);
    const reports = new Map<string, Report>();
    for (const [key, slice] of this.slices) {
      if (reports.size >= QUOTA_BUCKETS_MAX) break;
      reports.set(key, slice.report(...this.wanted(key), sentAtMs));
    }
    if (reports.size === 0) return 'lent';
    const buckets = [...reports].map(([key, { report }]) => {
      const { kind, limit } = this.sliceOf(key);
      return { key, kind, limit, ...report, refunds: [...report.refunds] };
    });
    try {
      const reply = await this.ports.commands.send(syncQuota, { gatewayId: this.borrowerId, organisationId: this.organisationId, sequence: this.sequence, buckets }, { timeoutMs: SYNC_TIMEOUT_MS });
      if (reply.kind === 'ok') {
        for (const { key, ...grant } of reply.value.grants) {
          const report = reports.get(key);
          if (report !== undefined) this.sliceOf(key).granted(grant, report.batch, reply.value.ownerId, sentAtMs);
        }
        return reply.value.isLearning ? 'learning' : 'lent';
      }
    } catch (error) {
      if (!(error instanceof ServiceUnavailableError) && !(error instanceof CommandFailedError)) throw error;
    }
    for (const [key, { batch }] of reports) this.sliceOf(key).unanswered(batch);
    return 'away';
  }

  /** Answers the requests that the report spoke for, oldest first; those that came later go with the next one. */
  private serve(asked: ReadonlySet<Waiter>, outcome: SyncOutcome): void {
    const nowMs = this.ports.clock.now();
    const waiting: Waiter[] = [];
    for (const waiter of this.waiters) {
      const taken = this.tryTake(waiter.asks) ?? (outcome === 'away' ? this.tryTake(waiter.asks, 'share') : undefined);
      if (taken !== undefined) waiter.resolve(taken);
      else if (!asked.has(waiter) || (outcome === 'learning' && nowMs - waiter.sinceMs < LEARNING_WAIT_MS)) waiting.push(waiter);
      else waiter.resolve(this.denial(waiter.asks));
    }
    this.waiters = waiting;
  }

  private tryTake(asks: readonly QuotaAsk[], from: 'slice' | 'share' = 'slice'): QuotaHeld | undefined {
    const nowMs = this.ports.clock.now();
    const parts: QuotaHeld['parts'][number][] = [];
    for (const ask of asks) {
      const slice = this.openSlice(ask);
      const taken = slice.take(ask.amount, nowMs) ?? (from === 'share' ? slice.takeShare(ask.amount, nowMs) : undefined);
      if (taken === undefined) {
        for (const part of parts) part.slice.settle(part.taken, 0, nowMs);
        return undefined;
      }
      parts.push({ slice, taken });
    }
    return { kind: 'held', parts };
  }

  /** The limit that lacks most, measured by its own size, is the one to name. */
  private denial(asks: readonly QuotaAsk[]): QuotaAnswer {
    const slices = asks.map((ask) => this.openSlice(ask));
    const lacking = asks.map((ask, index) => (ask.amount - (slices[index]?.remaining ?? 0)) / ask.limit);
    return { kind: 'denied', askIndex: lacking.indexOf(Math.max(...lacking)), slices };
  }

  /** The smallest amount that a waiting request asks of a limit, and all of them together. */
  private wanted(key: string): [number, number] {
    let need = 0;
    let demand = 0;
    for (const { asks } of this.waiters) {
      for (const ask of asks) {
        if (ask.key !== key) continue;
        need = need === 0 ? ask.amount : Math.min(need, ask.amount);
        demand += ask.amount;
      }
    }
    return [need, demand];
  }

  private openSlice({ key, kind, limit }: QuotaAsk): QuotaSlice {
    let slice = this.slices.get(key);
    if (slice === undefined) this.slices.set(key, (slice = new QuotaSlice(kind, limit)));
    slice.limit = limit;
    return slice;
  }

  private sliceOf(key: string): QuotaSlice {
    const slice = this.slices.get(key);
    if (slice === undefined) throw new RangeError(`no limit ${key} of ${this.organisationId} is open`);
    return slice;
  }

  private leave(waiter: Waiter): void {
    if (!this.waiters.includes(waiter)) return;
    this.waiters = this.waiters.filter((other) => other !== waiter);
    waiter.resolve(this.denial(waiter.asks));
  }
}

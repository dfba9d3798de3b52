import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { QuotaBucket, QUOTA_LEASE_MS, QUOTA_WINDOW_MS, type QuotaKind } from './quota-bucket.js';
import { QuotaSlice, type QuotaTaken } from './quota-slice.js';

interface Step {
  readonly gateway: number;
  readonly action: 'take' | 'settle' | 'sync' | 'lose-reply' | 'lose-request' | 'die' | 'wait';
  readonly amount: number;
}

interface Use {
  readonly gateway: number;
  readonly taken: QuotaTaken;
  readonly atMs: number;
  amount: number;
  open: boolean;
}

/** Several gateways, one authority and a network that loses messages; `uses` is what really happened. */
class Fleet {
  nowMs = 1_000_000;
  readonly uses: Use[] = [];
  private readonly bucket: QuotaBucket;
  private gateways: { id: string; slice: QuotaSlice }[];
  private born = 0;

  constructor(private readonly kind: QuotaKind, private readonly limit: number, count: number) {
    this.bucket = new QuotaBucket(kind, limit);
    this.gateways = Array.from({ length: count }, () => this.newGateway());
  }

  run({ gateway: number, action, amount }: Step): void {
    const gateway = this.gateways[number % this.gateways.length];
    if (gateway === undefined) return;
    const own = this.uses.filter((use) => use.open && use.gateway === this.gateways.indexOf(gateway));
    if (action === 'wait') this.wait(amount * 170);
    else if (action === 'take') this.take(gateway, amount);
    else if (action === 'settle') this.settle(gateway.slice, own[0], amount);
    else if (action === 'die') this.die(this.gateways.indexOf(gateway));
    else this.sync(gateway, amount, action);
    this.nowMs += 7;
  }

  /** What counts now: every use of the last minute, or everything that is held. */
  used(): number {
    return this.uses.filter((use) => (this.kind === 'held' ? use.open : use.atMs > this.nowMs - QUOTA_WINDOW_MS)).reduce((sum, use) => sum + use.amount, 0);
  }

  /** Whoever has requests in work renews in time; a window needs no such promise. */
  private wait(ms: number): void {
    if (this.kind === 'held') for (const gateway of this.gateways) this.sync(gateway, 0, 'sync');
    this.nowMs += ms;
  }

  private newGateway(): { id: string; slice: QuotaSlice } {
    this.born += 1;
    return { id: `inst_${this.born}`, slice: new QuotaSlice(this.kind, this.limit) };
  }

  private take(gateway: { id: string; slice: QuotaSlice }, amount: number): void {
    const wanted = this.kind === 'held' ? 1 : amount;
    let taken = gateway.slice.take(wanted, this.nowMs);
    if (taken === undefined) {
      this.sync(gateway, wanted, 'sync');
      taken = gateway.slice.take(wanted, this.nowMs);
    }
    if (taken !== undefined) this.uses.push({ gateway: this.gateways.indexOf(gateway), taken, atMs: this.nowMs, amount: wanted, open: true });
  }

  private settle(slice: QuotaSlice, use: Use | undefined, amount: number): void {
    if (use === undefined) return;
    const actual = Math.min(use.amount, amount);
    slice.settle(use.taken, actual, this.nowMs);
    use.amount = this.kind === 'held' ? 0 : actual;
    use.open = false;
  }

  /** Its requests die with it; a window still counts them. */
  private die(index: number): void {
    for (const use of this.uses) if (use.gateway === index) use.open = false;
    this.gateways[index] = this.newGateway();
    for (const [at, use] of this.uses.entries()) if (use.gateway === index) this.uses[at] = { ...use, gateway: -1, open: false };
  }

  private sync({ id, slice }: { id: string; slice: QuotaSlice }, demand: number, action: Step['action']): void {
    const { report, batch } = slice.report(demand, demand, this.nowMs);
    if (action === 'lose-request') return slice.unanswered(batch);
    const grant = this.bucket.sync(id, this.limit, report, this.nowMs);
    if (action === 'lose-reply') return slice.unanswered(batch);
    return slice.granted(grant, batch, 'inst_router', this.nowMs);
  }
}

const steps = fc.array(fc.record({
  gateway: fc.nat(3),
  action: fc.constantFrom<Step['action'][]>('take', 'take', 'take', 'settle', 'settle', 'sync', 'lose-reply', 'lose-request', 'die', 'wait', 'wait'),
  amount: fc.integer({ min: 0, max: 40 }),
}), { maxLength: 250, size: 'max' });

describe('quota', () => {
  test('gateways together never use more than the limit within any minute, whatever is lost and whoever dies', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 300 }), steps, (count, limit, run) => {
      const fleet = new Fleet('window', limit, count);
      for (const step of run) {
        fleet.run(step);
        expect(fleet.used()).toBeLessThanOrEqual(limit);
      }
    }), { numRuns: 200 });
  });

  test('gateways together never hold more than the limit at once', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 12 }), steps, (count, limit, run) => {
      const fleet = new Fleet('held', limit, count);
      for (const step of run) {
        fleet.run(step);
        expect(fleet.used()).toBeLessThanOrEqual(limit);
      }
    }), { numRuns: 200 });
  });

  test('one gateway alone gets the whole limit, exactly, and all of it again a minute later', () => {
    const bucket = new QuotaBucket('window', 10);
    const slice = new QuotaSlice('window', 10);
    let nowMs = 5_000;
    const takeAll = (): number => {
      for (let count = 0; ; count += 1) {
        if (slice.take(1, nowMs) !== undefined) continue;
        const { report, batch } = slice.report(1, 1, nowMs);
        slice.granted(bucket.sync('inst_1', 10, report, nowMs), batch, 'r', nowMs);
        if (slice.take(1, nowMs) === undefined) return count;
      }
    };
    expect(takeAll()).toBe(10);
    expect(slice.retryAfterMs).toBe(61_000);
    nowMs += 60_999;
    expect(takeAll()).toBe(0);
    nowMs += 1;
    expect(takeAll()).toBe(10);
  });

  test('what was reserved and not needed is free again at once, also when it was reported before', () => {
    const bucket = new QuotaBucket('window', 100);
    const slice = new QuotaSlice('window', 100);
    const sync = (need: number, nowMs: number): void => {
      const { report, batch } = slice.report(need, need, nowMs);
      slice.granted(bucket.sync('inst_1', 100, report, nowMs), batch, 'r', nowMs);
    };
    sync(100, 0);
    const first = slice.take(100, 1);
    sync(0, 10);
    expect(slice.take(1, 11)).toBeUndefined();
    if (first !== undefined) slice.settle(first, 30, 12);
    sync(70, 13);
    expect(slice.take(70, 14)).toBeDefined();
    sync(1, 15);
    expect(slice.take(1, 16)).toBeUndefined();
  });

  test('what a dead gateway had reserved counts as used for a minute and is free then', () => {
    const bucket = new QuotaBucket('window', 50);
    const dead = new QuotaSlice('window', 50);
    const { report, batch } = dead.report(50, 50, 0);
    dead.granted(bucket.sync('inst_dead', 50, report, 0), batch, 'r', 0);
    const other = { held: 0, usedTotal: 0, recentUsed: 0, refunds: [], need: 1, demand: 1, headroom: 0 };
    expect(bucket.sync('inst_2', 50, other, QUOTA_LEASE_MS + QUOTA_WINDOW_MS).granted).toBe(0);
    expect(bucket.sync('inst_2', 50, other, QUOTA_LEASE_MS + QUOTA_WINDOW_MS + 1_000).granted).toBe(1);
  });

  test('an authority that takes over knows what gateways hold and used before it lends', () => {
    const slice = new QuotaSlice('window', 20);
    const first = new QuotaBucket('window', 20);
    const ask = (bucket: QuotaBucket, need: number, nowMs: number, learning: boolean): void => {
      const { report, batch } = slice.report(need, need, nowMs);
      slice.granted(bucket.sync('inst_1', 20, report, nowMs, learning), batch, learning ? 'r2' : 'r1', nowMs);
    };
    ask(first, 15, 0, false);
    expect(slice.take(15, 1)).toBeDefined();
    ask(first, 0, 100, false);
    const second = new QuotaBucket('window', 20);
    ask(second, 0, 200, true);
    const other = { held: 0, usedTotal: 0, recentUsed: 0, refunds: [], need: 4, demand: 4, headroom: 0 };
    expect(second.sync('inst_2', 20, other, 300).granted).toBe(0);
    expect(second.sync('inst_2', 20, { ...other, need: 3, demand: 3 }, 301).granted).toBe(3);
  });

  test('without an authority a gateway keeps to its share', () => {
    const slice = new QuotaSlice('window', 10);
    const { report, batch } = slice.report(1, 1, 0);
    slice.granted({ granted: 0, available: 0, bin: 0, resetMs: 0, retryAfterMs: 0, gateways: 4 }, batch, 'r', 0);
    expect([slice.takeShare(1, 1), slice.takeShare(1, 2)].every((taken) => taken !== undefined)).toBe(true);
    expect(slice.takeShare(1, 3)).toBeUndefined();
    expect(report.need).toBe(1);
  });
});

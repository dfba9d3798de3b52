import type { Logger, Timers } from '@penstock/kernel';
import { RequestFault } from './request-fault.js';

/** How often the event loop is looked at; a turn that is too long goes on for so long at least before it is noticed. */
export const GUARD_INTERVAL_MS = 20;
/** Busier than this share of the time, an event loop has nothing left for what comes in bursts. */
export const BUSY_UTILISATION = 0.9;
/** A loop that gets less of a core than this is starved by others; it turns requests away only when it is late by several times as much. */
export const BUSY_CPU_SHARE = 0.6;
/** How many times as late. */
export const STARVED_LAG_FACTOR = 10;
/** Fewer requests than this are no overload. */
export const BUSY_REQUESTS_MIN = 64;
/** A single slow turn is no overload: the loop has to be too slow for as long as so many looks take, in two looks at least. */
export const SLOW_LOOKS_MIN = 10;
/** The share of new requests that is taken shrinks by this factor while the loop is too slow, and grows by this step while it is not. */
const SHRINK = 0.7;
const GROW = 0.02;
/** Some requests are always taken, so that the share can be found out. */
const SHARE_MIN = 0.05;
/** So often at most a line says how many requests were turned away. */
const LOG_INTERVAL_MS = 1_000;

/** One for all: what an overloaded process says often has to cost little. */
export const overloaded = new RequestFault({ code: 'queue_full', message: 'This gateway is as busy as it may be. Try again shortly; another gateway may answer at once.', retryAfterMs: 1_000 });

/** How busy the event loop was in the last interval. */
export interface LoopReading {
  /** From 0 to 1. */
  readonly utilisation: number;
  /** CPU time of its thread, as a share of the time that passed. */
  readonly cpuShare: number;
  /** How late a timer of it fired, in milliseconds. */
  readonly lagMs: number;
}

/**
 * Turns new requests away while the event loop cannot keep up, so that those that were taken keep their pace. It looks at
 * utilisation and at lag: a loop may be busy all the time with short turns and serve everybody well.
 */
export class LoadGuard {
  private share = 1;
  private credit = 1;
  private slowLooks = 0;
  private lastLookMs: number;
  private lagMsAllowed: number;
  /** Whether this turn already lasts too long for what it has still to read. */
  private isTurnOver = false;
  private refused = 0;
  private looksSinceLog = 0;
  private readonly stopTimer: () => void;

  /** `lagMsMax`: a timer of the loop may be so late before new requests are turned away. `inFlight`: requests in work. */
  constructor(
    timers: Timers, private readonly logger: Logger, private readonly lagMsMax: number, private readonly inFlight: () => number,
    private readonly read: () => LoopReading = loopReader(GUARD_INTERVAL_MS), private readonly now: () => number = () => performance.now(),
  ) {
    this.lastLookMs = now();
    this.lagMsAllowed = lagMsMax;
    this.stopTimer = timers.every(GUARD_INTERVAL_MS, () => this.look());
  }

  /** False when this request is to be refused. Refusals are spread evenly. */
  mayTake(): boolean {
    if (this.share >= 1 && this.slowLooks === 0) return true;
    this.credit = Math.min(1, this.credit) + this.share;
    if (this.credit < 1 || this.turnIsOver()) {
      this.refused += 1;
      return false;
    }
    this.credit -= 1;
    return true;
  }

  /**
   * Beyond its capacity a loop's turns grow by a factor each: what comes in during one is the work of the next. The look that would
   * see it waits for the end of the turn as everything does, so that after a slow turn the next one is watched from inside.
   */
  private turnIsOver(): boolean {
    if (!this.isTurnOver && this.slowLooks > 0) this.isTurnOver = this.now() - this.lastLookMs > GUARD_INTERVAL_MS + this.lagMsAllowed && this.inFlight() >= BUSY_REQUESTS_MIN;
    return this.isTurnOver;
  }

  stop(): void {
    this.stopTimer();
  }

  private look(): void {
    const { utilisation, cpuShare, lagMs } = this.read();
    this.lagMsAllowed = cpuShare >= BUSY_CPU_SHARE ? this.lagMsMax : this.lagMsMax * STARVED_LAG_FACTOR;
    const isSlow = utilisation >= BUSY_UTILISATION && lagMs > this.lagMsAllowed && this.inFlight() >= BUSY_REQUESTS_MIN;
    // A look that comes late stands for all that could not be had meanwhile.
    const looks = isSlow ? Math.max(1, Math.round((lagMs + GUARD_INTERVAL_MS) / GUARD_INTERVAL_MS)) : 1;
    const wasSlow = this.slowLooks > 0;
    this.slowLooks = isSlow ? this.slowLooks + looks : 0;
    this.isTurnOver = false;
    this.lastLookMs = this.now();
    if (wasSlow && this.slowLooks >= SLOW_LOOKS_MIN) this.share = Math.max(SHARE_MIN, this.share * SHRINK ** looks);
    else if (this.slowLooks === 0) this.share = Math.min(1, this.share + GROW);
    this.tell(lagMs);
  }

  /** One line for all that were refused meanwhile: a line for each would cost more than refusing them. */
  private tell(lagMs: number): void {
    this.looksSinceLog += 1;
    if (this.refused === 0 || this.looksSinceLog * GUARD_INTERVAL_MS < LOG_INTERVAL_MS) return;
    this.logger.warn({ refused: this.refused, takenShare: Math.round(this.share * 100) / 100, lagMs: Math.round(lagMs) }, 'requests were turned away: the event loop cannot keep up');
    this.refused = 0;
    this.looksSinceLog = 0;
  }
}

function loopReader(intervalMs: number): () => LoopReading {
  let last = performance.eventLoopUtilization();
  let lastMs = performance.now();
  let lastCpu = process.threadCpuUsage();
  return () => {
    const now = performance.eventLoopUtilization();
    const nowMs = performance.now();
    const { utilization } = performance.eventLoopUtilization(now, last);
    const cpu = process.threadCpuUsage(lastCpu);
    const reading = { utilisation: utilization, cpuShare: (cpu.user + cpu.system) / 1_000 / Math.max(1, nowMs - lastMs), lagMs: Math.max(0, nowMs - lastMs - intervalMs) };
    last = now;
    lastMs = nowMs;
    lastCpu = process.threadCpuUsage();
    return reading;
  };
}

import type { Clock, Timers } from '@penstock/kernel';

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  readonly call: () => void;
  isCancelled: boolean;
}

/** More than this in one run is a timer that never lets time pass. */
const EVENTS_MAX = 5_000_000;

/**
 * Virtual time: a queue of events in the order in which they fall due. Between two events everything that was set off
 * settles, so that a run depends on nothing but its inputs. Calls are not awaited: what they wait for are later events.
 */
export class VirtualTime implements Clock, Timers {
  private readonly heap: Entry[] = [];
  private order = 0;

  constructor(private nowMs = Date.UTC(2_026, 10, 29, 12)) {}

  now(): number {
    return this.nowMs;
  }

  after(delayMs: number, call: () => void): () => void {
    this.order += 1;
    const entry: Entry = { dueMs: this.nowMs + Math.max(0, delayMs), order: this.order, call, isCancelled: false };
    this.push(entry);
    return () => {
      entry.isCancelled = true;
    };
  }

  every(intervalMs: number, call: () => void | Promise<void>): () => void {
    let isStopped = false;
    let isBusy = false;
    let cancel = (): void => undefined;
    const next = (): void => {
      cancel = this.after(intervalMs, () => {
        next();
        if (isBusy || isStopped) return;
        const result = call();
        if (result === undefined) return;
        isBusy = true;
        void result.finally(() => {
          isBusy = false;
        });
      });
    };
    next();
    return () => {
      isStopped = true;
      cancel();
    };
  }

  /** Lets time pass until `until` says that it is enough, asked after each event, or for `forMs`. True when `until` was met. */
  async run(forMs: number, until: () => boolean = () => false): Promise<boolean> {
    const endMs = this.nowMs + forMs;
    await settled();
    for (let events = 0; ; events += 1) {
      if (until()) return true;
      if (events > EVENTS_MAX) throw new RangeError(`more than ${EVENTS_MAX} events in one run of virtual time`);
      const next = this.heap[0];
      if (next === undefined || next.dueMs > endMs) break;
      this.pop();
      if (next.isCancelled) continue;
      this.nowMs = next.dueMs;
      next.call();
      await settled();
    }
    this.nowMs = endMs;
    return false;
  }

  private push(entry: Entry): void {
    const { heap } = this;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!isBefore(entry, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[index] = heap[child] as Entry;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}

/** Resolves once every promise that can settle without an event has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

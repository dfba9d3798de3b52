import { priorityClasses } from './priority.js';

/** What the order needs to know of one waiting request. */
export interface FairEntry {
  readonly organisationId: string;
  /** Class, 0 first. */
  readonly rank: number;
  /** Tokens that the request may need; its cost. */
  readonly workTokens: number;
  /** Share of its tenant against others of the same class. */
  readonly weight: number;
  /** Set by {@link FairOrder.add}: the virtual time at which its turn begins, and when it came. */
  startTag: number;
  sequence: number;
}

/**
 * The order in which waiting requests get slots: classes strictly one after the other; inside a class start-time fair
 * queueing (Goyal, Vin and Cheng, 1996) by token cost over tenants, and inside a tenant first come first served. A tenant's
 * next request begins when the cost of its earlier ones, divided by its weight, is used up; a tenant that was away gets no credit.
 */
export class FairOrder<Entry extends FairEntry> {
  private readonly entries: Entry[] = [];
  private readonly clocks = priorityClasses.map(() => 0);
  private readonly counts = priorityClasses.map(() => 0);
  private readonly finishOfTenant = priorityClasses.map(() => new Map<string, number>());
  private nextSequence = 0;

  get size(): number {
    return this.entries.length;
  }

  /** In turn; undefined past the end. */
  at(position: number): Entry | undefined {
    return this.entries[position];
  }

  add(entry: Entry): void {
    const { rank, organisationId } = entry;
    const finishes = this.finishOfTenant[rank];
    const startTag = Math.max(this.clocks[rank] ?? 0, finishes?.get(organisationId) ?? 0);
    entry.startTag = startTag;
    entry.sequence = this.nextSequence += 1;
    finishes?.set(organisationId, startTag + Math.max(1, entry.workTokens) / entry.weight);
    this.counts[rank] = (this.counts[rank] ?? 0) + 1;
    this.entries.splice(this.positionOf(entry), 0, entry);
  }

  /** Its turn came: time goes on to where it began. */
  serve(entry: Entry): void {
    this.clocks[entry.rank] = Math.max(this.clocks[entry.rank] ?? 0, entry.startTag);
  }

  remove(entry: Entry): void {
    const position = this.positionOf(entry);
    if (this.entries[position] !== entry) return;
    this.entries.splice(position, 1);
    const left = (this.counts[entry.rank] ?? 1) - 1;
    this.counts[entry.rank] = left;
    // Nobody of this class waits, so nobody of it has a claim on an order.
    if (left === 0) this.finishOfTenant[entry.rank]?.clear();
  }

  clear(): void {
    this.entries.length = 0;
    this.counts.fill(0);
    for (const finishes of this.finishOfTenant) finishes.clear();
  }

  /** Where the entry stands or belongs. */
  private positionOf(entry: Entry): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.entries[middle];
      if (other !== undefined && comesBefore(other, entry)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function comesBefore(left: FairEntry, right: FairEntry): boolean {
  if (left.rank !== right.rank) return left.rank < right.rank;
  if (left.startTag !== right.startTag) return left.startTag < right.startTag;
  return left.sequence < right.sequence;
}

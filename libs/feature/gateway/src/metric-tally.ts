import { Counter, type CounterConfiguration } from 'prom-client';

/** One series of a counter; adding to it is an addition. */
export class Tally<Label extends string = string> {
  private pending = 0;

  constructor(private readonly labels: Readonly<Record<Label, string>>) {}

  inc(by = 1): void {
    this.pending += by;
  }

  /** Hands what was added since the last call to the counter. */
  flush(counter: Counter<Label>): void {
    const { pending } = this;
    this.pending = 0;
    if (pending > 0) counter.inc(this.labels, pending);
  }
}

/**
 * A counter for what happens with every request: the library checks and hashes the labels at each increment, which costs more than the
 * rest of the bookkeeping of a request. Here that is done when somebody reads the figures.
 */
export class TalliedCounter<Label extends string> {
  private readonly tallies = new Map<string, Tally<Label>>();

  constructor(configuration: CounterConfiguration<Label>) {
    const { tallies } = this;
    new Counter<Label>({
      ...configuration,
      collect() {
        for (const tally of tallies.values()) tally.flush(this);
      },
    });
  }

  /** The series with these labels. */
  of(labels: Readonly<Record<Label, string>>): Tally<Label> {
    const key = Object.values(labels).join('\n');
    let tally = this.tallies.get(key);
    if (tally === undefined) this.tallies.set(key, (tally = new Tally(labels)));
    return tally;
  }
}

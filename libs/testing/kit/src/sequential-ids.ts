import type { IdPrefix, IdSource } from '@penstock/kernel';

const DIGITS = 32;

/** `ep_00…01`, `ep_00…02`, …: the shape of real ids, and the same ones in every run. */
export class SequentialIds implements IdSource {
  private count = 0;

  next(prefix: IdPrefix): string {
    this.count += 1;
    return `${prefix}_${this.count.toString(16).padStart(DIGITS, '0')}`;
  }
}

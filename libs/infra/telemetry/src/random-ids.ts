import { randomFillSync } from 'node:crypto';
import type { IdPrefix, IdSource } from '@penstock/kernel';

const ID_BYTES = 16;
/** Asking the operating system for many ids at once costs little more than for one. In bytes. */
const POOL_BYTES = 256 * ID_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let at = pool.length;

/** So many random bytes from the operating system, as hexadecimal digits; never all of them zero, which a trace id must not be. At most 4,096. */
export function randomHex(bytes: number): string {
  for (;;) {
    if (at + bytes > pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    at += bytes;
    const hex = pool.toString('hex', at - bytes, at);
    if (!/^0+$/.test(hex)) return hex;
  }
}

/** 128 random bits per id, from the operating system. */
export const randomIds: IdSource = {
  next: (prefix: IdPrefix) => `${prefix}_${randomHex(ID_BYTES)}`,
};

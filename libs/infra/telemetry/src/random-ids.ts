import { randomFillSync } from 'node:crypto';
import type { IdPrefix, IdSource } from '@penstock/kernel';

const ID_BYTES = 16;
/** Asking the operating system for many ids at once costs little more than for one. */
const POOL_IDS = 256;
const pool = Buffer.alloc(ID_BYTES * POOL_IDS);
let at = pool.length;

/** 128 random bits per id, from the operating system. */
export const randomIds: IdSource = {
  next(prefix: IdPrefix) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    at += ID_BYTES;
    return `${prefix}_${pool.toString('hex', at - ID_BYTES, at)}`;
  },
};

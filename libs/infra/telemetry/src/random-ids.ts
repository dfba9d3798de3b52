import { randomBytes } from 'node:crypto';
import type { IdPrefix, IdSource } from '@penstock/kernel';

/** 128 random bits per id, from the operating system. */
export const randomIds: IdSource = { next: (prefix: IdPrefix) => `${prefix}_${randomBytes(16).toString('hex')}` };

import { BigIntType } from '@mikro-orm/postgresql';

/** Types of columns that tables share. */

/** Byte order, so that a dump in key order follows the index. */
export const keyText = { columnType: 'text collate "C"' } as const;

export const instantColumn = { columnType: 'timestamptz(3)' } as const;

/** A whole number beyond 32 bits; the connection reads it as a `number`, which is exact below 2^53. */
export const wholeNumber = { type: new BigIntType('number') };

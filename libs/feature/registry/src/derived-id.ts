import { createHash } from 'node:crypto';

const DIGITS = 32;

/** An id in the shape of all others that follows from a text, so that whoever derives it again gets the same aggregate. */
export function derivedId(prefix: 'ep' | 'mv' | 'split' | 'split', key: string): string {
  return `${prefix}_${createHash('sha256').update(key).digest('hex').slice(0, DIGITS)}`;
}

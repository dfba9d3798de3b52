import type { TableRow } from './table-projection.js';

/** A row holds something that PostgreSQL cannot keep. */
export class UnstorableRowError extends Error {
  override readonly name = 'UnstorableRowError';
}

/**
 * Returns the row, or throws {@link UnstorableRowError}. Each event's own row is checked, since a later event of the batch may
 * write over it before PostgreSQL sees it: what is poison must not depend on where a batch ends.
 */
export function storableRow(row: TableRow | undefined): TableRow | undefined {
  if (row === undefined) return undefined;
  for (const [property, value] of Object.entries(row)) {
    const problem = value === undefined ? 'is undefined' : problemOf(value);
    if (problem !== undefined) throw new UnstorableRowError(`${property} ${problem}, which PostgreSQL cannot store`);
  }
  return row;
}

/** Inside a document a field may be undefined: it is left out. */
function problemOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value.includes('\0') || !value.isWellFormed() ? 'holds a NUL or half a character' : undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : 'holds a number that is not finite';
    case 'object':
      if (value === null) return undefined;
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'holds an invalid time' : undefined;
      return problemInside(value);
    default:
      return undefined;
  }
}

function problemInside(document: object): string | undefined {
  for (const [key, part] of Object.entries(document)) {
    const problem = problemOf(key) ?? problemOf(part);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

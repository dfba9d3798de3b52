/** `data`: these rows will never be taken. `transient`: the database was away, busy or changed under us; the same again may work. */
export type FailureKind = 'data' | 'transient';

/** Data exception and integrity violation. */
const DATA_CLASSES: ReadonlySet<string> = new Set(['22', '23']);

/** PostgreSQL answers a text with a NUL character with `protocol_violation`, since the statement seems to end there. */
const NUL_IN_STATEMENT = '08P01';

/** Sorts a failure of a statement by its SQLSTATE. Errors without one come from the connection. */
export function classifyFailure(error: unknown): FailureKind {
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code !== 'string') return 'transient';
  return code === NUL_IN_STATEMENT || (code.length === 5 && DATA_CLASSES.has(code.slice(0, 2))) ? 'data' : 'transient';
}

export function describeFailure(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

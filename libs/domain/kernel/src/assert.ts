/** Thrown when an invariant of the program is broken: a bug, never an expected outcome. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Checks an invariant, in production too. Throws {@link InvariantError} with `message` when `condition` is false. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Marks a branch that the types make impossible; a value that gets here is reported by its JSON. */
export function assertNever(value: never): never {
  throw new InvariantError(`Unexpected value: ${JSON.stringify(value)}`);
}

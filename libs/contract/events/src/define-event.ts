import type { z } from 'zod';
import type { Context } from './contexts.js';

/** One published version of one event type. It is never edited: a change is a new version and an upcaster. */
export interface EventContract<Type extends string = string, Schema extends z.ZodType = z.ZodType> {
  /** `<noun>.<past-verb>.v<N>`, as it stands in `ce-type`. */
  readonly type: Type;
  readonly context: Context;
  /** The aggregate whose subject carries it. */
  readonly aggregate: string;
  /** One sentence for the published catalogue. */
  readonly summary: string;
  readonly schema: Schema;
  /** A body that must parse for ever. */
  readonly example: z.input<Schema>;
}

export function defineEvent<const Type extends string, Schema extends z.ZodType>(contract: EventContract<Type, Schema>): EventContract<Type, Schema> {
  return contract;
}

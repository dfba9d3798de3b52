import { z } from 'zod';

/** A command or query that one service serves over NATS request/reply. */
export interface CommandContract<Request extends z.ZodType = z.ZodType, Reply extends z.ZodType = z.ZodType> {
  /** `cmd.<service>.<verb>` changes something, `qry.<service>.<noun>` only reads. */
  readonly subject: string;
  readonly summary: string;
  readonly request: Request;
  /** Shape of `value` in a positive reply. */
  readonly reply: Reply;
}

export function defineCommand<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>): CommandContract<Request, Reply> {
  return contract;
}

/** Which limit a refused request met, with its numbers at that moment. The same shape as the kernel's `LimitMet`. */
export const limitMet = z.object({
  /** Such as `requests_per_minute`, `tokens_per_minute`, `concurrency` or `queue`. */
  name: z.string(),
  /** Whose limit it is, in words. */
  scope: z.string(),
  limit: z.number(),
  used: z.number(),
  /** Left out where the request would have taken one. */
  requested: z.number().optional(),
});

/** Why a command was not carried out. The same shape as the kernel's `Refusal`. */
export const refusal = z.object({
  code: z.string(),
  message: z.string(),
  param: z.string().optional(),
  retryAfterMs: z.number().optional(),
  limit: limitMet.optional(),
});

/** What travels back. */
export type CommandReply<Value> =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'refused'; readonly refusal: z.infer<typeof refusal> };

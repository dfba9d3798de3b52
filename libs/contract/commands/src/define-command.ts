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

/** Why a command was not carried out. The same shape as the kernel's `Refusal`. */
export const refusal = z.object({
  code: z.string(),
  message: z.string(),
  param: z.string().optional(),
  retryAfterMs: z.number().optional(),
});

/** What travels back. */
export type CommandReply<Value> =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'refused'; readonly refusal: z.infer<typeof refusal> };

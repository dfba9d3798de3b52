import type { CommandContract, CommandReply, refusal } from '@penstock/contract-commands';
import { EventLogFullError, EventLogUnavailableError, ServiceUnavailableError, type Causation, type Logger, type Refusal } from '@penstock/kernel';
import type { NatsContext } from '@nestjs/microservices';
import type { z } from 'zod';

/** What a handler returns: a value for the caller, or why not. */
export type HandlerOutcome<Value> = { readonly kind: 'ok'; readonly value: Value } | { readonly kind: 'refused'; readonly refusal: Refusal };

export function ok<Value>(value: Value): HandlerOutcome<Value> {
  return { kind: 'ok', value };
}

export function refused(refusal: Refusal): { readonly kind: 'refused'; readonly refusal: Refusal } {
  return { kind: 'refused', refusal };
}

/**
 * Checks a command against its contract, runs the handler and turns every expected failure into a refusal.
 * Use it as the body of a `@MessagePattern(contract.subject)` method; `@Payload()` is `payload`, `@Ctx()` is `context`.
 */
export async function answerCommand<Request extends z.ZodType, Reply extends z.ZodType>(
  contract: CommandContract<Request, Reply>,
  payload: unknown,
  logger: Logger,
  handle: (request: z.output<Request>) => Promise<HandlerOutcome<z.input<Reply>>>,
): Promise<CommandReply<z.input<Reply>>> {
  const parsed = contract.request.safeParse(payload);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return refusedReply({ code: 'invalid_value', message: `${contract.subject}: ${issue?.message ?? 'the body does not match'}`, param: issue?.path.join('.') });
  }
  try {
    const outcome = await handle(parsed.data);
    return outcome.kind === 'ok' ? { kind: 'ok', value: outcome.value } : refusedReply(outcome.refusal);
  } catch (error) {
    return refusedReply(explain(error, contract.subject, logger));
  }
}

function refusedReply({ code, message, param, retryAfterMs, limit }: Refusal): { kind: 'refused'; refusal: z.input<typeof refusal> } {
  return { kind: 'refused', refusal: { code, message, ...(param === undefined ? {} : { param }), ...(retryAfterMs === undefined ? {} : { retryAfterMs }), ...(limit === undefined ? {} : { limit }) } };
}

function explain(error: unknown, subject: string, logger: Logger): Refusal {
  if (error instanceof EventLogUnavailableError) return { code: 'service_unavailable', message: `${error.message}. Nothing was changed; try again shortly.`, retryAfterMs: 1_000 };
  if (error instanceof EventLogFullError) return { code: 'event_log_full', message: error.message };
  if (error instanceof ServiceUnavailableError) return { code: 'service_unavailable', message: `${error.message}. Try again shortly.`, retryAfterMs: 1_000 };
  logger.error({ err: error, subject }, 'command failed');
  return { code: 'internal_error', message: 'The command failed inside the service; its log has the reason under this subject.' };
}

/** Ties what a command causes to where it came from: headers `x-correlation-id`, `x-causation-id`, `traceparent`. */
export function causationOf(context: NatsContext, fallbackId: string): Causation {
  const headers = context.getHeaders() as { get?(name: string): string } | undefined;
  const header = (name: string): string | undefined => headers?.get?.(name) || undefined;
  const correlationId = header('x-correlation-id') ?? fallbackId;
  return { correlationId, causationId: header('x-causation-id') ?? correlationId, traceparent: header('traceparent') };
}

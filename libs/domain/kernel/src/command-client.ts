import type { CommandContract, CommandReply } from '@penstock/contract-commands';
import type { z } from 'zod';
import type { Causation } from './event-log.js';

export interface CommandOptions extends Partial<Causation> {
  /** How long to wait for the reply; the default is {@link COMMAND_TIMEOUT_MS}. */
  readonly timeoutMs?: number | undefined;
  /** Gives up early, for example because the client went away. */
  readonly signal?: AbortSignal | undefined;
}

export const COMMAND_TIMEOUT_MS = 5_000;

/** Sends commands and queries to other services over request/reply. */
export interface CommandClient {
  /**
   * Sends one command and returns the owner's reply.
   * Throws {@link ServiceUnavailableError} when nobody serves it or no reply came in time; the command may then have been carried out.
   * Throws {@link CommandFailedError} when the service failed inside, or answered in a shape that the contract does not know.
   */
  send<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: CommandContract<Request, Reply>,
    request: z.input<Request>,
    options?: CommandOptions,
  ): Promise<CommandReply<z.output<Reply>>>;
}

/** The service that owns a command is not there. `reason` tells whether nobody listens or the answer did not come. */
export class ServiceUnavailableError extends Error {
  override readonly name = 'ServiceUnavailableError';
  constructor(readonly subject: string, readonly reason: 'no-responders' | 'timeout' | 'disconnected' | 'aborted', options?: ErrorOptions) {
    super(`No answer to ${subject}: ${reason}`, options);
  }
}

/** The service answered, but not with a reply of the contract: a bug in it, or two versions that do not fit. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError';
  constructor(readonly subject: string, reason: string, options?: ErrorOptions) {
    super(`${subject} failed: ${reason}`, options);
  }
}

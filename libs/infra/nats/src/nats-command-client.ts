import { refusal, type CommandContract, type CommandReply } from '@penstock/contract-commands';
import { COMMAND_TIMEOUT_MS, CommandFailedError, ServiceUnavailableError, type CommandClient, type CommandOptions } from '@penstock/kernel';
import { headers, RequestError, TimeoutError, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { z } from 'zod';
import type { NatsLink } from './connect-nats.js';
import { textOf } from './broker-api.js';
import { headerValue } from './event-codec.js';
import { activeTraceparent, inSpan, SpanKind } from './tracing.js';

/** Sends commands to Nest's NATS transporter: its JSON envelope, over requests that share one reply subscription. */
export class NatsCommandClient implements CommandClient {
  private readonly replies = new WeakMap<CommandContract, z.ZodType>();
  private sent = 0;
  /** Ends the waits of this connection when it is lost: replies that were on their way do not come again. */
  private loss = new AbortController();

  constructor(private readonly link: NatsLink) {
    link.onDisconnect(() => {
      this.loss.abort();
      this.loss = new AbortController();
    });
  }

  async send<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, request: z.input<Request>, options: CommandOptions = {}): Promise<CommandReply<z.output<Reply>>> {
    const { subject } = contract;
    if (this.link.state() !== 'connected') throw new ServiceUnavailableError(subject, 'disconnected');
    if (options.signal?.aborted === true) throw new ServiceUnavailableError(subject, 'aborted');
    return inSpan(`send ${subject}`, SpanKind.CLIENT, options.traceparent, { 'messaging.system': 'nats', 'messaging.destination.name': subject }, async () => {
      const message = await this.request(subject, request, options);
      return this.readReply(contract, message);
    });
  }

  private async request(subject: string, data: unknown, options: CommandOptions): Promise<Msg> {
    this.sent += 1;
    const body = JSON.stringify({ pattern: subject, data, id: String(this.sent) });
    const reply = this.link.connection.request(subject, body, { timeout: options.timeoutMs ?? COMMAND_TIMEOUT_MS, headers: commandHeaders(options) });
    const lost = this.loss.signal;
    try {
      return await orAborted(reply, options.signal === undefined ? lost : AbortSignal.any([options.signal, lost]));
    } catch (error) {
      throw new ServiceUnavailableError(subject, lost.aborted ? 'disconnected' : reasonOf(error), { cause: error });
    }
  }

  private readReply<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, message: Msg): CommandReply<z.output<Reply>> {
    const packet = JSON.parse(textOf(message.data)) as { readonly err?: unknown; readonly response?: unknown };
    if (packet.err !== undefined && packet.err !== null) throw new CommandFailedError(contract.subject, describe(packet.err));
    const parsed = this.schemaOf(contract).safeParse(packet.response);
    if (!parsed.success) throw new CommandFailedError(contract.subject, `the reply does not match the contract at ${parsed.error.issues[0]?.path.join('.') ?? ''}: ${parsed.error.issues[0]?.message ?? ''}`);
    return parsed.data as CommandReply<z.output<Reply>>;
  }

  private schemaOf(contract: CommandContract): z.ZodType {
    let schema = this.replies.get(contract);
    if (schema === undefined) {
      schema = z.discriminatedUnion('kind', [z.object({ kind: z.literal('ok'), value: contract.reply }), z.object({ kind: z.literal('refused'), refusal })]);
      this.replies.set(contract, schema);
    }
    return schema;
  }
}

function commandHeaders(options: CommandOptions): MsgHdrs {
  const result = headers();
  const traceparent = activeTraceparent() ?? options.traceparent;
  if (traceparent !== undefined) result.append('traceparent', headerValue(traceparent));
  if (options.correlationId !== undefined) result.append('x-correlation-id', headerValue(options.correlationId));
  if (options.causationId !== undefined) result.append('x-causation-id', headerValue(options.causationId));
  return result;
}

class AbortedWait extends Error {}

function orAborted(reply: Promise<Msg>, signal: AbortSignal): Promise<Msg> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new AbortedWait());
    signal.addEventListener('abort', onAbort, { once: true });
    reply.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function reasonOf(error: unknown): ServiceUnavailableError['reason'] {
  if (error instanceof AbortedWait) return 'aborted';
  if (error instanceof RequestError && error.isNoResponders()) return 'no-responders';
  if (error instanceof TimeoutError) return 'timeout';
  return 'disconnected';
}

/** Nest sends `{ status, message }` for an exception; the stack stays with the service. */
function describe(err: unknown): string {
  if (typeof err === 'string') return err;
  if (typeof err === 'object' && err !== null && 'message' in err) return String(err.message);
  return JSON.stringify(err);
}

import { refusal, type CommandContract, type CommandReply } from '@penstock/contract-commands';
import { CommandFailedError, ServiceUnavailableError, type CommandClient, type CommandOptions } from '@penstock/kernel';
import { z } from 'zod';

type Handler = (request: unknown, options: CommandOptions) => Promise<unknown>;

/** Commands inside one process: requests and replies are checked and copied through JSON, as on the wire. */
export class LocalCommandClient implements CommandClient {
  private readonly handlers = new Map<string, Handler>();
  readonly sent: { readonly subject: string; readonly request: unknown }[] = [];

  /** Serves one command. The handler gets the parsed request. */
  serve<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: CommandContract<Request, Reply>,
    handle: (request: z.output<Request>, options: CommandOptions) => Promise<CommandReply<z.input<Reply>>> | CommandReply<z.input<Reply>>,
  ): void {
    this.handlers.set(contract.subject, async (request, options) => handle(contract.request.parse(request), options));
  }

  /** From now on nobody serves the command. */
  withdraw(contract: CommandContract): void {
    this.handlers.delete(contract.subject);
  }

  async send<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, request: z.input<Request>, options: CommandOptions = {}): Promise<CommandReply<z.output<Reply>>> {
    const handler = this.handlers.get(contract.subject);
    if (handler === undefined) throw new ServiceUnavailableError(contract.subject, 'no-responders');
    const copy = JSON.parse(JSON.stringify(request)) as unknown;
    this.sent.push({ subject: contract.subject, request: copy });
    const reply = JSON.parse(JSON.stringify(await handler(copy, options))) as unknown;
    const shape = z.discriminatedUnion('kind', [z.object({ kind: z.literal('ok'), value: contract.reply as z.ZodType }), z.object({ kind: z.literal('refused'), refusal })]);
    const parsed = shape.safeParse(reply);
    if (!parsed.success) throw new CommandFailedError(contract.subject, `the reply does not match the contract: ${parsed.error.message}`);
    return parsed.data as CommandReply<z.output<Reply>>;
  }
}

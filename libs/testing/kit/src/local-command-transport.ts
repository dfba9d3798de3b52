import { NatsContext, Server, type CustomStrategy, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { CommandContract, CommandReply } from '@penstock/contract-commands';
import { firstValueFrom } from 'rxjs';
import { z } from 'zod';
import type { LocalCommandClient } from './local-command-client.js';

const groups = new WeakMap<LocalCommandClient, Map<string, MessageHandler[]>>();

/** Serves the `@MessagePattern` handlers of a Nest application to a {@link LocalCommandClient}. Of several that serve one subject, the newest answers. */
export function localCommandTransport(client: LocalCommandClient): CustomStrategy {
  return { strategy: new LocalCommandServer(client) };
}

class LocalCommandServer extends Server implements CustomTransportStrategy {
  private readonly serving: { readonly subject: string; readonly handler: MessageHandler }[] = [];

  constructor(private readonly client: LocalCommandClient) {
    super();
  }

  listen(callback: () => void): void {
    let group = groups.get(this.client);
    if (group === undefined) groups.set(this.client, (group = new Map()));
    for (const [subject, handler] of this.messageHandlers) {
      const handlers = group.get(subject) ?? [];
      group.set(subject, [...handlers, handler]);
      this.serving.push({ subject, handler });
      this.client.serve(anyContract(subject), (request) => this.handle(subject, request));
    }
    callback();
  }

  close(): void {
    const group = groups.get(this.client);
    for (const { subject, handler } of this.serving) {
      const left = (group?.get(subject) ?? []).filter((other) => other !== handler);
      group?.set(subject, left);
      if (left.length === 0) this.client.withdraw(anyContract(subject));
    }
  }

  on(): void {
    throw new Error('there are no connection events inside one process');
  }

  unwrap<T>(): T {
    throw new Error('there is no server to unwrap inside one process');
  }

  private async handle(subject: string, request: unknown): Promise<CommandReply<unknown>> {
    const handler = groups.get(this.client)?.get(subject)?.at(-1);
    if (handler === undefined) throw new Error(`nobody serves ${subject}`);
    const result: unknown = await handler(request, new NatsContext([subject, undefined]));
    return (await firstValueFrom(this.transformToObservable(result))) as CommandReply<unknown>;
  }
}

function anyContract(subject: string): CommandContract {
  return { subject, summary: 'Any command.', request: z.unknown(), reply: z.unknown() };
}

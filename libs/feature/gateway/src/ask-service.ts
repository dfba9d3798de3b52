import type { CommandContract } from '@penstock/contract-commands';
import type { CommandOptions } from '@penstock/kernel';
import type { z } from 'zod';
import type { GatewayPorts } from './gateway-ports.js';
import { RequestFault } from './http/request-fault.js';

/** Sends a command for one request and returns the value; a refusal becomes the error answer, with `params` renamed for the caller. */
export async function askService<Request extends z.ZodType, Reply extends z.ZodType>(
  ports: Pick<GatewayPorts, 'commands'>,
  contract: CommandContract<Request, Reply>,
  request: z.input<Request>,
  call: { readonly requestId: string },
  options: CommandOptions & { readonly params?: Readonly<Record<string, string>> } = {},
): Promise<z.output<Reply>> {
  const { params, ...commandOptions } = options;
  const reply = await ports.commands.send(contract, request, { correlationId: call.requestId, causationId: call.requestId, ...commandOptions });
  if (reply.kind === 'ok') return reply.value;
  const { code, message, param, retryAfterMs, limit } = reply.refusal;
  throw new RequestFault({ code, message, ...(param === undefined ? {} : { param: params?.[param] ?? param }), ...(retryAfterMs === undefined ? {} : { retryAfterMs }), ...(limit === undefined ? {} : { limit }) });
}

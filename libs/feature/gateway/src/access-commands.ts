import { handleCommand, type AggregateRef, type CommandMetadata, type Decider, type NewEvent } from '@penstock/kernel';
import type { GatewayPorts } from './gateway-ports.js';
import type { GatewayViews } from './gateway-views.js';
import { RequestFault } from './http/request-fault.js';

/** How long an answer waits for this gateway to see its own write; after that the write still stands. */
const READ_YOUR_WRITE_MS = 2_000;

/** Carries out a command on what the gateway owns, and waits until this gateway acts by it. */
export async function decideAccess<State, Command, Event extends NewEvent>(
  parts: { readonly ports: GatewayPorts; readonly views: GatewayViews },
  decider: Decider<State, Command, Event>,
  ref: AggregateRef,
  command: Command,
  requestId: string,
): Promise<void> {
  const { ports, views } = parts;
  const metadata: CommandMetadata = { commandId: ports.ids.next('cmd'), source: 'penstock/gateway', nowMs: ports.clock.now(), correlationId: requestId, causationId: requestId };
  const outcome = await handleCommand(ports.log, decider, ref, command, metadata);
  if (outcome.kind === 'refused') throw new RequestFault(outcome.refusal);
  await atMost(ports, READ_YOUR_WRITE_MS, views.access.waitFor('EV_ACCESS', outcome.lastSequence));
}

export function atMost(ports: Pick<GatewayPorts, 'timers'>, limitMs: number, work: Promise<void>): Promise<void> {
  let cancel: () => void = () => undefined;
  const limit = new Promise<void>((resolve) => {
    cancel = ports.timers.after(limitMs, resolve);
  });
  return Promise.race([work, limit]).finally(() => cancel());
}

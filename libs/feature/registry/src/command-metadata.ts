import type { Causation, Clock, CommandMetadata, IdSource } from '@penstock/kernel';

/** As it stands in the log for what this service writes. */
export const REGISTRY_SOURCE = 'penstock/registry';

/** What a command carries into the log. Without a cause from outside it is its own. */
export function newCommand(ports: { readonly clock: Clock; readonly ids: IdSource }, causation?: Causation): CommandMetadata {
  const commandId = ports.ids.next('cmd');
  return { ...(causation ?? { correlationId: commandId, causationId: commandId }), commandId, source: REGISTRY_SOURCE, nowMs: ports.clock.now() };
}

import type { removeTrafficSplit, setTrafficSplit } from '@penstock/contract-commands';
import { checkTrafficSplit, trafficSplitDecider, trafficSplitKey, trafficSplitRef, type CatalogState } from '@penstock/domain-catalog';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { handleCommand, type Causation, type Clock, type EventLog, type IdSource } from '@penstock/kernel';
import type { z } from 'zod';
import { newCommand } from './command-metadata.js';
import { derivedId } from './derived-id.js';

type SetRequest = z.output<typeof setTrafficSplit.request>;
type SetReply = z.input<typeof setTrafficSplit.reply>;
type RemoveRequest = z.output<typeof removeTrafficSplit.request>;
type RemoveReply = z.input<typeof removeTrafficSplit.reply>;

export interface TrafficDeskPorts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly catalog: { state(): CatalogState };
}

/** Spreads names over endpoints. A name has one split of each owner: its id follows from both. */
export class TrafficDesk {
  constructor(private readonly ports: TrafficDeskPorts) {}

  async set(request: SetRequest, causation: Causation): Promise<HandlerOutcome<SetReply>> {
    const check = checkTrafficSplit(request, this.ports.catalog.state());
    if (check.kind === 'refused') return check;
    const { name, organisationId, sticky, reason } = request;
    const splitId = derivedId('split', trafficSplitKey(name, organisationId));
    const data = { splitId, name, organisationId, targets: check.targets, sticky, reason };
    const outcome = await handleCommand(this.ports.log, trafficSplitDecider, trafficSplitRef(splitId), { kind: 'set', data }, newCommand(this.ports, causation));
    return outcome.kind === 'refused' ? refused(outcome.refusal) : ok({ splitId, sequence: outcome.lastSequence });
  }

  async remove({ splitId, reason }: RemoveRequest, causation: Causation): Promise<HandlerOutcome<RemoveReply>> {
    const outcome = await handleCommand(this.ports.log, trafficSplitDecider, trafficSplitRef(splitId), { kind: 'remove', reason }, newCommand(this.ports, causation));
    return outcome.kind === 'refused' ? refused(outcome.refusal) : ok({ splitId, sequence: outcome.lastSequence });
  }
}

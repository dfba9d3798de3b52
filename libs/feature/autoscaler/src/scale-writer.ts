import { endpointScaleDecider, endpointScaleRef, type ScaleDecision } from '@penstock/domain-scaling';
import { handleCommand, type Causation, type Clock, type CommandOutcome, type EventLog, type IdSource } from '@penstock/kernel';
import type { EndpointScale } from '@penstock/domain-scaling';

export const AUTOSCALER_SOURCE = 'penstock/autoscaler';

/** Appends scaling decisions. A decision that was made on an older wanted number changes nothing. */
export class ScaleWriter {
  constructor(private readonly log: EventLog, private readonly clock: Clock, private readonly ids: IdSource) {}

  /** The number that is wanted afterwards is in the outcome's state, whoever decided it. */
  change(endpointId: string, from: number, decision: ScaleDecision, causation?: Causation): Promise<CommandOutcome<EndpointScale>> {
    const commandId = this.ids.next('cmd');
    const cause = causation ?? { correlationId: commandId, causationId: commandId };
    const command = { kind: 'change' as const, endpointId, from, ...decision, signals: { ...decision.signals } };
    return handleCommand(this.log, endpointScaleDecider, endpointScaleRef(endpointId), command, { ...cause, commandId, source: AUTOSCALER_SOURCE, nowMs: this.clock.now() });
  }
}

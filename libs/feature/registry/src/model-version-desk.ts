import type { registerModelVersion } from '@penstock/contract-commands';
import { modelVersionDecider, modelVersionKey, modelVersionRef, type ModelVersionLifecycle } from '@penstock/domain-catalog';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { assert, handleCommand, type Causation, type Clock, type EventLog, type IdSource } from '@penstock/kernel';
import type { z } from 'zod';
import { newCommand } from './command-metadata.js';
import { derivedId } from './derived-id.js';

type Request = z.output<typeof registerModelVersion.request>;
type Reply = z.input<typeof registerModelVersion.reply>;

export interface ModelVersionDeskPorts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Takes model versions in. The reading of their artifacts follows from the event. */
export class ModelVersionDesk {
  constructor(private readonly ports: ModelVersionDeskPorts) {}

  /**
   * The id follows from organisation, name and version, so that two submissions of one version meet on one aggregate:
   * the same again is a no-op, a rejected one starts anew, another content is refused.
   */
  async register(request: Request, causation: Causation): Promise<HandlerOutcome<Reply>> {
    const { declared, license, ...rest } = request;
    const modelVersionId = derivedId('mv', modelVersionKey(request.modelName, request.version, request.organisationId));
    const data = { ...rest, modelVersionId, license, declared };
    const outcome = await handleCommand(this.ports.log, modelVersionDecider, modelVersionRef(modelVersionId), { kind: 'submit', data }, newCommand(this.ports, causation));
    return outcome.kind === 'refused' ? refused(outcome.refusal) : ok({ modelVersionId, status: statusOf(outcome.state) });
  }
}

function statusOf(state: ModelVersionLifecycle): Reply['status'] {
  assert(state.status !== 'unknown', 'a model version that was submitted is known');
  return state.status;
}

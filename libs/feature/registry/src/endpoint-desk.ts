import type { deployEndpoint, retireEndpoint } from '@penstock/contract-commands';
import { asCatalogueEvent } from '@penstock/contract-events';
import {
  adapterProblem, checkDeployment, endpointDecider, endpointKey, endpointRef, evolveModelVersion, isModelVersionEvent, modelVersionRef, scopedName,
  type CatalogState, type EndpointEvent, type ModelVersionState,
} from '@penstock/domain-catalog';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { handleCommand, type Causation, type Clock, type EventLog, type IdSource } from '@penstock/kernel';
import type { z } from 'zod';
import { newCommand } from './command-metadata.js';
import { derivedId } from './derived-id.js';

type DeployRequest = z.output<typeof deployEndpoint.request>;
type DeployReply = z.input<typeof deployEndpoint.reply>;
type RetireRequest = z.output<typeof retireEndpoint.request>;
type RetireReply = z.input<typeof retireEndpoint.reply>;

/** How many generations of a name may have come and gone since this process read the log last. */
const GENERATION_STEPS_MAX = 64;

export interface EndpointDeskPorts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly catalog: { state(): CatalogState };
}

/** Deploys and retires endpoints. */
export class EndpointDesk {
  constructor(private readonly ports: EndpointDeskPorts) {}

  /**
   * A name belongs to one active endpoint of its owner: the id follows from owner, name and generation, and whoever deploys
   * finds the current generation in the log. Two deploys at once meet on one aggregate, and the expected version decides.
   */
  async deploy(request: DeployRequest, causation: Causation): Promise<HandlerOutcome<DeployReply>> {
    const catalog = this.ports.catalog.state();
    const name = scopedName(request.name, request.organisationId);
    const modelVersion = await this.modelVersion(request.modelVersionId, catalog);
    const check = checkDeployment(request, modelVersion, catalog);
    // A name that stands already is the aggregate's to judge: the same settings again are no fault, whatever the checks say today.
    const isKnown = catalog.endpointIdByName.has(name);
    if (modelVersion === undefined || (check.kind === 'refused' && !isKnown)) return check.kind === 'refused' ? check : refused({ code: 'not_found', message: 'The model version is not there.' });
    // What an endpoint may change later is judged for one that stands, too.
    const problem = adapterProblem({ name: request.name, organisationId: request.organisationId, adapters: request.adapters ?? [] }, modelVersion, catalog);
    if (problem !== undefined) return refused(problem);
    const first = Math.max(1, catalog.generationByName.get(name) ?? 0);
    for (let generation = first; generation < first + GENERATION_STEPS_MAX; generation += 1) {
      const endpointId = derivedId('ep', endpointKey(request.name, request.organisationId, generation));
      if (await this.isRetired(endpointId)) continue;
      return this.append({ ...request, endpointId, engine: modelVersion.engine }, causation);
    }
    return refused({ code: 'conflict', message: `${request.name} was deployed and retired too often just now; send the command again.`, retryAfterMs: 1_000 });
  }

  async retire(request: RetireRequest, causation: Causation): Promise<HandlerOutcome<RetireReply>> {
    const outcome = await handleCommand(this.ports.log, endpointDecider, endpointRef(request.endpointId), { kind: 'retire', reason: request.reason }, newCommand(this.ports, causation));
    return outcome.kind === 'refused' ? refused(outcome.refusal) : ok({ endpointId: request.endpointId });
  }

  private async append({ rules, adapters, ...data }: DeployRequest & { readonly endpointId: string; readonly engine: ModelVersionState['engine'] }, causation: Causation): Promise<HandlerOutcome<DeployReply>> {
    const outcome = await handleCommand(this.ports.log, endpointDecider, endpointRef(data.endpointId), { kind: 'deploy', data, rules, adapters }, newCommand(this.ports, causation));
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    return ok({ endpointId: data.endpointId, created: outcome.events.length > 0, sequence: outcome.lastSequence });
  }

  /** From memory, else from the log: it may have been registered a moment ago, by another instance. */
  private async modelVersion(modelVersionId: string, catalog: CatalogState): Promise<ModelVersionState | undefined> {
    const known = catalog.modelVersions.get(modelVersionId);
    if (known !== undefined) return known;
    let state: ModelVersionState | undefined;
    for (const recorded of await this.ports.log.load(modelVersionRef(modelVersionId))) {
      const event = asCatalogueEvent(recorded);
      if (isModelVersionEvent(event)) state = evolveModelVersion(state, event, Date.parse(recorded.time));
    }
    return state;
  }

  private async isRetired(endpointId: string): Promise<boolean> {
    const history = await this.ports.log.load(endpointRef(endpointId));
    return history.reduce((state, event) => endpointDecider.evolve(state, event as unknown as EndpointEvent), endpointDecider.initialState).status === 'retired';
  }
}

import type { CatalogState } from '@penstock/domain-catalog';
import { decideWake } from '@penstock/domain-scaling';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import type { Causation, LiveProjection } from '@penstock/kernel';
import type { ScaleWriter } from './scale-writer.js';

type WakeOutcome = HandlerOutcome<{ wantedReplicas: number }>;

/**
 * Wakes sleeping endpoints. The aggregate decides, not the projection, so a wake right after a scale to zero counts;
 * wakes that come while one is under way share its answer, and wakes in other processes meet at the aggregate's version.
 */
export class WakeHandler {
  private readonly underWay = new Map<string, Promise<WakeOutcome>>();

  constructor(private readonly catalog: LiveProjection<CatalogState>, private readonly writer: ScaleWriter) {}

  wake(endpointId: string, waiting: number, causation?: Causation): Promise<WakeOutcome> {
    const current = this.underWay.get(endpointId);
    if (current !== undefined) return current;
    const wake = this.wakeOnce(endpointId, waiting, causation).finally(() => this.underWay.delete(endpointId));
    this.underWay.set(endpointId, wake);
    return wake;
  }

  private async wakeOnce(endpointId: string, waiting: number, causation?: Causation): Promise<WakeOutcome> {
    const endpoint = this.catalog.state().endpoints.get(endpointId);
    const decision = endpoint === undefined ? undefined : decideWake({ status: endpoint.status, scaling: endpoint.scaling, wanted: undefined }, waiting);
    if (decision === undefined) {
      const message = `There is no active endpoint ${endpointId}; it was retired, or deployed a moment ago. List the endpoints and try again.`;
      return refused({ code: 'endpoint_not_found', message, param: 'endpointId' });
    }
    const outcome = await this.writer.change(endpointId, 0, decision, causation);
    return outcome.kind === 'refused' ? outcome : ok({ wantedReplicas: outcome.state.wanted });
  }
}

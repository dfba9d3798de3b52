import { servingPaceOf, type CatalogState, type EndpointState } from '@penstock/domain-catalog';
import type { FleetState } from '@penstock/domain-lifecycle';
import { replicaPaceOf, RoutingMemories, type AdmissionSettings, type AdmissionState } from '@penstock/domain-routing';
import type { LiveProjection } from '@penstock/kernel';
import type { ColdStarts } from './cold-starts.js';
import { endpointFleets } from './endpoint-fleet.js';
import { EndpointDesk, type DeskOptions } from './endpoint-desk.js';
import type { RouterMembers } from './router-members.js';

export interface DesksOptions {
  readonly desk: DeskOptions;
  readonly catalog: LiveProjection<CatalogState>;
  readonly fleet: LiveProjection<FleetState>;
  readonly members: RouterMembers;
  readonly coldStarts: ColdStarts;
  readonly leaseTtlMs: number;
  readonly learningMs: number;
}

/** The desks of the endpoints that this instance owns and that were asked for since it started, kept in line with catalog and fleet. */
export class Desks {
  private readonly byEndpoint = new Map<string, EndpointDesk>();
  /** What was learned about the replicas of the endpoints, here and elsewhere. */
  readonly memories: RoutingMemories;

  constructor(private readonly options: DesksOptions) {
    this.memories = new RoutingMemories((endpointId) => replicaPaceOf(servingPaceOf(options.catalog.state().endpoints.get(endpointId))));
  }

  find(endpointId: string): EndpointDesk | undefined {
    return this.byEndpoint.get(endpointId);
  }

  all(): readonly EndpointDesk[] {
    return [...this.byEndpoint.values()];
  }

  *states(): Iterable<AdmissionState> {
    for (const desk of this.byEndpoint.values()) yield desk.state;
  }

  /** The desk of an endpoint; opened when this is the first call for it. */
  open(endpoint: EndpointState): EndpointDesk {
    const known = this.byEndpoint.get(endpoint.endpointId);
    if (known !== undefined) return known;
    // Only an endpoint that existed when the owners changed last may have requests in flight that this instance does not know.
    const { changedAtMs } = this.options.members;
    const grantsFromMs = endpoint.createdAtMs <= changedAtMs ? changedAtMs + this.options.learningMs : 0;
    const desk = new EndpointDesk(this.settingsOf(endpoint), grantsFromMs, this.options.desk, this.memories.of(endpoint.endpointId));
    this.byEndpoint.set(endpoint.endpointId, desk);
    this.sync([desk]);
    return desk;
  }

  /** Takes a desk out; it gets no more calls. */
  close(desk: EndpointDesk): void {
    this.byEndpoint.delete(desk.endpointId);
    this.memories.forget(desk.endpointId);
    this.options.coldStarts.settle(desk.endpointId);
  }

  /** Brings desks in line with what catalog and fleet say now. */
  sync(desks: readonly EndpointDesk[] = this.all()): void {
    if (desks.length === 0) return;
    const catalog = this.options.catalog.state().endpoints;
    const fleets = endpointFleets(this.options.fleet.state(), new Map(desks.map(({ endpointId }) => [endpointId, servingPaceOf(catalog.get(endpointId)).kvTokens])));
    for (const desk of desks) {
      const endpoint = catalog.get(desk.endpointId);
      const fleet = fleets.get(desk.endpointId);
      if (endpoint === undefined || endpoint.status === 'retired' || fleet === undefined) this.retire(desk);
      else desk.sync(this.settingsOf(endpoint), fleet);
      if (!desk.needsWake()) this.options.coldStarts.settle(desk.endpointId);
    }
  }

  tick(): void {
    for (const desk of this.byEndpoint.values()) desk.tick();
  }

  private retire(desk: EndpointDesk): void {
    this.close(desk);
    desk.refuseAll({ code: 'endpoint_not_found', message: 'The endpoint was retired while the request waited.' });
  }

  private settingsOf(endpoint: EndpointState): AdmissionSettings {
    const { queueMax, queueWaitMsMax } = endpoint.serving;
    return { endpointId: endpoint.endpointId, queueMax, queueWaitMsMax, leaseTtlMs: this.options.leaseTtlMs, probesApart: true };
  }
}

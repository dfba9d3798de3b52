import type { EndpointLoad } from '@penstock/contract-commands';
import type { CatalogState } from '@penstock/domain-catalog';
import { runningOf } from '@penstock/domain-routing';
import type { FleetState } from '@penstock/domain-lifecycle';
import type { Clock, LiveProjection, Signals } from '@penstock/kernel';
import type { Desks } from './desks.js';
import type { RouterMembers } from './router-members.js';

export const LOAD_INTERVAL_MS = 1_000;

export interface LoadReporterParts {
  readonly clock: Clock;
  readonly signals: Signals;
  readonly catalog: LiveProjection<CatalogState>;
  readonly fleet: LiveProjection<FleetState>;
  readonly desks: Desks;
  readonly members: RouterMembers;
}

/** Tells the load of every owned endpoint that has any, had a request, or has replicas: silence must not look like idleness. */
export function reportLoad(parts: LoadReporterParts): void {
  const sentAtMs = parts.clock.now();
  const served = new Set<string>();
  for (const replica of parts.fleet.state().replicas.values()) if (replica.phase === 'ready') served.add(replica.endpointId);
  for (const endpoint of parts.catalog.state().endpoints.values()) {
    const { endpointId } = endpoint;
    if (endpoint.status !== 'active' || !parts.members.owns(endpointId)) continue;
    const state = parts.desks.find(endpointId)?.state;
    const isIdle = state === undefined || (state.waiting.size === 0 && state.leases.size === 0 && state.loans.size === 0 && state.lastRequestAtMs === null);
    if (isIdle && !served.has(endpointId)) continue;
    const load: EndpointLoad = { endpointId, sentAtMs, waiting: state?.waiting.size ?? 0, running: state === undefined ? 0 : runningOf(state), lastRequestAtMs: state?.lastRequestAtMs ?? null };
    parts.signals.publish(`tele.endpoint.${endpointId}`, load);
  }
}

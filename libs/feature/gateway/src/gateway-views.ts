import { accessProjection, type AccessState } from '@penstock/domain-access';
import { catalogProjection, type CatalogState } from '@penstock/domain-catalog';
import { fleetProjection, type FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import type { GatewayPorts } from './gateway-ports.js';

/** What the request path knows without asking anybody. It goes on serving from here while every other service is away. */
export interface GatewayViews {
  readonly access: LiveProjection<AccessState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly fleet: LiveProjection<FleetState>;
}

export async function followViews(ports: Pick<GatewayPorts, 'follow'>): Promise<GatewayViews> {
  const [access, catalog, fleet] = await Promise.all([ports.follow(accessProjection), ports.follow(catalogProjection), ports.follow(fleetProjection)]);
  return { access, catalog, fleet };
}

export async function closeViews(views: GatewayViews): Promise<void> {
  await Promise.all([views.access.close(), views.catalog.close(), views.fleet.close()]);
}

import { permissionsOf } from '@penstock/infra-nats';
import type { EmbeddedServers, NatsUser } from '@penstock/infra-runtimes';
import { serviceNames, type ServiceName } from './service-environments.js';

/** A NATS user for each service, with its allow-lists, for the embedded server. */
export function natsUsers(): readonly NatsUser[] {
  return serviceNames.map((name) => ({ user: name, ...permissionsOf(name) }));
}

/** The address at which each service is its own user; a server that runs elsewhere is reached as the environment says. */
export function natsServiceUrls(servers: Pick<EmbeddedServers, 'natsUrlOf'>): Readonly<Record<ServiceName, string>> {
  return Object.fromEntries(serviceNames.map((name) => [name, servers.natsUrlOf(name)])) as Record<ServiceName, string>;
}

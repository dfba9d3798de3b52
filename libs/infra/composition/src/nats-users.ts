import { natsServiceNames, permissionsOf, type NatsServiceName } from '@penstock/infra-nats';
import type { EmbeddedServers, NatsUser } from '@penstock/infra-runtimes';

/** A NATS user for each service, with its allow-lists, for the embedded server. */
export function natsUsers(): readonly NatsUser[] {
  return natsServiceNames.map((name) => ({ user: name, ...permissionsOf(name) }));
}

/** The address at which each service is its own user; a server that runs elsewhere is reached as the environment says. */
export function natsServiceUrls(servers: Pick<EmbeddedServers, 'natsUrlOf'>): Readonly<Record<NatsServiceName, string>> {
  return Object.fromEntries(natsServiceNames.map((name) => [name, servers.natsUrlOf(name)])) as Record<NatsServiceName, string>;
}

import type { EndpointState } from './catalog-state.js';

const PORT_MAX = 65_535;

/** The port where each of the endpoint's engines publishes its cache events: the engine option `kv_events_port`; null where that names none. */
export function kvEventsPortOf(endpoint: Pick<EndpointState, 'engineOptions'> | undefined): number | null {
  const port = endpoint?.engineOptions['kv_events_port'];
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= PORT_MAX ? port : null;
}

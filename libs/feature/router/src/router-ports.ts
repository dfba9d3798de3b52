import type { ServicePorts } from '@penstock/feature-shell';

/** The router needs nothing beyond what every service has. */
export type RouterPorts = ServicePorts;

import type { EngineProbe } from '@penstock/domain-serving';
import type { ServicePorts } from '@penstock/feature-shell';

/** What the router needs beyond what every service has: a way to see whether a replica that failed works again. */
export interface RouterPorts extends ServicePorts {
  readonly probe: Pick<EngineProbe, 'generate'>;
}

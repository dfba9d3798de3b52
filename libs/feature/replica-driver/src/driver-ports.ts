import type { ReplicaDriver } from '@penstock/domain-lifecycle';
import type { EngineProbe } from '@penstock/domain-serving';
import type { ServicePorts } from '@penstock/feature-shell';

export interface ReplicaDriverPorts extends ServicePorts {
  readonly driver: ReplicaDriver;
  readonly probe: EngineProbe;
}

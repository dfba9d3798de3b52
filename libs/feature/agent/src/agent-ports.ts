import type { ArtifactPuller, EngineDriver, EngineProbe, EngineRecords, HardwareProbe } from '@penstock/domain-serving';
import type { ServicePorts } from '@penstock/feature-shell';

export interface AgentPorts extends ServicePorts {
  /** One for each kind of engine; what this node cannot run answers `undefined` to `detect`. */
  readonly drivers: readonly EngineDriver[];
  readonly probe: EngineProbe;
  readonly artifacts: ArtifactPuller;
  readonly records: EngineRecords;
  readonly hardware: HardwareProbe;
  /** Version of the agent, as nodes report it. */
  readonly agentVersion: string;
}

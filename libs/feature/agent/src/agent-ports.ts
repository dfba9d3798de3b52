import type { ArtifactPuller, EngineDriver, EngineProbe, EngineRecords, HardwareProbe, MigDriver } from '@penstock/domain-serving';
import type { ServicePorts } from '@penstock/feature-shell';

export interface AgentPorts extends ServicePorts {
  /** One for each kind of engine; what this node cannot run answers `undefined` to `detect`. */
  readonly drivers: readonly EngineDriver[];
  readonly probe: EngineProbe;
  readonly artifacts: ArtifactPuller;
  readonly records: EngineRecords;
  readonly hardware: HardwareProbe;
  /** Changes MIG instances. Left out, GPUs stay as they are split. */
  readonly mig?: MigDriver | undefined;
  /** Version of the agent, as nodes report it. */
  readonly agentVersion: string;
}

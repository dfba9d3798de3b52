import type { NodeJoinedV1 } from '@penstock/contract-events';
import type { DetectedAccelerator, EngineDriver, HardwareProbe } from '@penstock/domain-serving';

const DEVICE_CHARACTERS = 60;

export interface NodeReportParts {
  readonly nodeId: string;
  readonly hardware: HardwareProbe;
  readonly drivers: readonly EngineDriver[];
  readonly agentVersion: string;
}

/** What this machine has and can run. Accelerators keep their ids over restarts, since these follow from the node and the device. */
export async function buildNodeReport({ nodeId, hardware, drivers, agentVersion }: NodeReportParts): Promise<NodeJoinedV1> {
  const detected = await hardware.detect();
  const engines = await Promise.all(drivers.map(async (driver) => {
    const found = await driver.detect();
    return found === undefined ? [] : [{ kind: driver.kind, version: found.version }];
  }));
  return {
    nodeId,
    hostname: detected.hostname,
    accelerators: detected.accelerators.map((accelerator) => ({ acceleratorId: acceleratorId(nodeId, accelerator), ...accelerator })),
    cpuCores: detected.cpuCores,
    memoryBytes: detected.memoryBytes,
    engines: engines.flat(),
    agentVersion,
  };
}

function acceleratorId(nodeId: string, { device }: DetectedAccelerator): string {
  const suffix = device === null ? 'cpu' : device.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, DEVICE_CHARACTERS);
  return `acc_${nodeId.replace(/^node_/, '')}-${suffix}`;
}

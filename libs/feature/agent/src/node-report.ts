import { WHOLE_COMPUTE_MILLI, type NodeJoinedV2 } from '@penstock/contract-events';
import type { DetectedAccelerator, EngineDriver, HardwareProbe } from '@penstock/domain-serving';

const DEVICE_CHARACTERS = 60;

export interface NodeReportParts {
  readonly nodeId: string;
  readonly hardware: HardwareProbe;
  readonly drivers: readonly EngineDriver[];
  readonly agentVersion: string;
  /** What the operator says of the machine. */
  readonly placement: NodePlacement;
}

/** What fails with the node, what it admits, and what it costs; null where the operator did not say. */
export interface NodePlacement {
  readonly failureDomain: string | null;
  readonly taints: readonly string[];
  readonly market: NodeJoinedV2['market'];
  readonly dollarsPerGpuHour: number | null;
}

/** What this machine has and can run. Accelerators keep their ids over restarts, since these follow from the node and the device. */
export async function buildNodeReport({ nodeId, hardware, drivers, agentVersion, placement }: NodeReportParts): Promise<NodeJoinedV2> {
  const detected = await hardware.detect();
  const engines = await Promise.all(drivers.map(async (driver) => {
    const found = await driver.detect();
    return found === undefined ? [] : [{ kind: driver.kind, version: found.version }];
  }));
  return {
    nodeId,
    hostname: detected.hostname,
    accelerators: detected.accelerators.map((accelerator) => ({
      acceleratorId: acceleratorId(nodeId, accelerator),
      type: accelerator.type,
      memoryBytes: accelerator.memoryBytes,
      device: accelerator.device,
      usableBytes: accelerator.usableBytes ?? accelerator.memoryBytes,
      computeMilli: WHOLE_COMPUTE_MILLI,
      islandId: accelerator.islandId ?? null,
      mig: accelerator.mig === undefined || accelerator.mig === null ? null : { isEnabled: accelerator.mig.isEnabled, instances: accelerator.mig.instances.map((instance) => ({ ...instance })) },
    })),
    cpuCores: detected.cpuCores,
    memoryBytes: detected.memoryBytes,
    engines: engines.flat(),
    agentVersion,
    failureDomain: placement.failureDomain ?? nodeId,
    taints: [...placement.taints],
    market: placement.market,
    price: placement.dollarsPerGpuHour === null ? null : { dollarsPerGpuHour: placement.dollarsPerGpuHour, source: 'AGENT_DOLLARS_PER_GPU_HOUR of its agent' },
  };
}

function acceleratorId(nodeId: string, { device }: DetectedAccelerator): string {
  const suffix = device === null ? 'cpu' : device.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, DEVICE_CHARACTERS);
  return `acc_${nodeId.replace(/^node_/, '')}-${suffix}`;
}

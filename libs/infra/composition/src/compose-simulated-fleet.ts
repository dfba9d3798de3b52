import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replicaDriverConfig, startReplicaDriver } from '@penstock/feature-replica-driver';
import type { RunningService } from '@penstock/feature-shell';
import { HttpEngineProbe } from '@penstock/infra-engines';
import { FleetDescriptionError, readFleetDescription, SimulatedFleet, type FleetDescription } from '@penstock/infra-simulated-fleet';
import { z } from 'zod';
import { EngineSimHost } from './engine-sim-host.js';
import { openPlatform } from './platform.js';
import { readSettings, type Environment } from './settings.js';
import { SharedTelemetry } from './shared-telemetry.js';
import { closingOnFailure, withClosers } from './with-closers.js';

const simulatedFleetConfig = z.object({
  /** A JSON file that describes the nodes. */
  SIMULATED_FLEET: z.string().min(1),
  /** Engines that run at once in this process; replicas beyond that share them. */
  SIMULATED_ENGINES_MAX: z.coerce.number().int().min(1).max(256).default(32),
  /** The built main of the simulated engine; the one of this checkout when left out. */
  ENGINE_SIM_SCRIPT: z.string().optional(),
});

/** Version that the nodes report for their agent. */
const DRIVER_VERSION = '0.1.0';
const DESCRIPTION_BYTES_MAX = 1_000_000;

/** The agent that stands for a fleet of imagined nodes in real time; what it serves comes from engine-sim behind HTTP. */
export async function composeSimulatedFleet(environment: Environment): Promise<RunningService> {
  const config = readSettings(replicaDriverConfig, environment);
  const settings = readSettings(simulatedFleetConfig, environment);
  const description = await readDescription(settings.SIMULATED_FLEET);
  const platform = await openPlatform('replica-driver', environment, { servesCommands: false });
  const closers = [() => platform.close()];
  return closingOnFailure(closers, async () => {
    const { clock, timers } = platform.ports;
    const engines = new EngineSimHost({ scriptPath: settings.ENGINE_SIM_SCRIPT ?? join(import.meta.dirname, '../../../../apps/engine-sim/dist/main.js'), enginesMax: settings.SIMULATED_ENGINES_MAX });
    closers.unshift(() => engines.close());
    const fleet = new SimulatedFleet({ description, clock, timers, engines, agentVersion: DRIVER_VERSION, logger: platform.logger });
    platform.logger.info({ nodes: fleet.machines.size }, 'the fleet of this agent is simulated');
    return withClosers(await startReplicaDriver(config, { ...platform.ports, driver: fleet.driver(), probe: new SharedTelemetry(new HttpEngineProbe(), clock) }), closers);
  });
}

async function readDescription(path: string): Promise<FleetDescription> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new FleetDescriptionError(`SIMULATED_FLEET is ${path}, which cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (text.length > DESCRIPTION_BYTES_MAX) throw new FleetDescriptionError(`SIMULATED_FLEET is ${path}, which has more than ${DESCRIPTION_BYTES_MAX} characters: describe nodes by shape and count.`);
  try {
    return readFleetDescription(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) throw new FleetDescriptionError(`SIMULATED_FLEET is ${path}, which is not JSON: ${error.message}`);
    throw error;
  }
}

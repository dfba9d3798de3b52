import { deployEndpoint, listEndpoints, registerModelVersion, type CommandReply } from '@penstock/contract-commands';
import type { ArtifactSource } from '@penstock/contract-events';
import { fleetProjection, replicasOf } from '@penstock/domain-lifecycle';
import { CacheArtifactInspector, defaultModel, randomModel, writeRandomModel } from '@penstock/infra-artifacts';
import { openArtifactCache } from './compose-models.js';
import { openPlatform, type Platform } from './platform.js';
import type { Environment } from './settings.js';

/** What `up` serves. */
export interface FirstModel {
  readonly name: string;
  readonly endpointId: string;
  /** Set when the real model could not be had: why, in words for the person at the terminal. */
  readonly standInReason: string | undefined;
}

export interface FirstModelOptions {
  readonly environment: Environment;
  /** Where a random-weight model is written when the real one cannot be had. */
  readonly randomModelPath: string;
  readonly onPull?: ((file: string, completedBytes: number, totalBytes: number | null) => void) | undefined;
  readonly onPhase?: ((phase: string) => void) | undefined;
  readonly readyWaitMs?: number | undefined;
}

const READY_WAIT_MS = 300_000;
const SLOTS = 4;
const CONTEXT_TOKENS = 2_048;
const COMMAND_WAIT_MS = 30_000;

/** Pulls, registers and deploys the default model unless its endpoint is there already, and waits until a replica is ready. */
export async function deployFirstModel(options: FirstModelOptions): Promise<FirstModel> {
  const platform = await openPlatform('standalone', options.environment, { servesCommands: false });
  try {
    const existing = await findEndpoint(platform);
    const model = existing ?? (await deploy(platform, options));
    await untilReady(platform, model.endpointId, options);
    return model;
  } finally {
    await platform.close();
  }
}

async function findEndpoint(platform: Platform): Promise<FirstModel | undefined> {
  const { endpoints } = valueOf(await platform.ports.commands.send(listEndpoints, {}, { timeoutMs: COMMAND_WAIT_MS }));
  const found = endpoints.find((endpoint) => endpoint.name === defaultModel.name) ?? endpoints.find((endpoint) => endpoint.name === randomModel.name);
  if (found === undefined) return undefined;
  return { name: found.name, endpointId: found.endpointId, standInReason: found.name === randomModel.name ? 'an earlier start could not get the real one' : undefined };
}

async function deploy(platform: Platform, options: FirstModelOptions): Promise<FirstModel> {
  const [first, ...others] = defaultModel.sources;
  const problem = await pullDefault(options);
  if (problem === undefined) {
    const endpointId = await registerAndDeploy(platform, { ...defaultModel, source: first, fallbackSources: others, expectedDigest: defaultModel.digest });
    return { name: defaultModel.name, endpointId, standInReason: undefined };
  }
  await writeRandomModel(options.randomModelPath);
  const endpointId = await registerAndDeploy(platform, { ...randomModel, source: { kind: 'directory', path: options.randomModelPath }, fallbackSources: [], expectedDigest: null });
  return { name: randomModel.name, endpointId, standInReason: problem };
}

/** Brings the default model into the machine's cache, where registry and agent find it. Returns why that did not work. */
async function pullDefault(options: FirstModelOptions): Promise<string | undefined> {
  try {
    const inspector = new CacheArtifactInspector(openArtifactCache(options.environment));
    const [first, ...others] = defaultModel.sources;
    await inspector.inspect(first, others, defaultModel.digest, (progress) => options.onPull?.(progress.file, progress.completedBytes, progress.totalBytes));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Deployable {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly source: ArtifactSource;
  readonly fallbackSources: readonly ArtifactSource[];
  readonly expectedDigest: string | null;
}

async function registerAndDeploy(platform: Platform, model: Deployable): Promise<string> {
  const { commands } = platform.ports;
  const registered = valueOf(await commands.send(registerModelVersion, {
    modelName: model.name,
    version: model.version,
    engine: 'llama.cpp',
    source: model.source,
    fallbackSources: [...model.fallbackSources],
    expectedDigest: model.expectedDigest,
    license: model.license,
  }, { timeoutMs: COMMAND_WAIT_MS }));
  const deployed = valueOf(await commands.send(deployEndpoint, {
    name: model.name,
    modelVersionId: registered.modelVersionId,
    organisationId: null,
    hardware: { acceleratorType: 'cpu', acceleratorCount: 1 },
    scaling: { minReplicas: 1, maxReplicas: 1, scaleToZeroAfterIdleSeconds: null },
    serving: { slotsPerReplica: SLOTS, contextTokens: CONTEXT_TOKENS, queueMax: 256, queueWaitMsMax: 30_000 },
    engineOptions: {},
  }, { timeoutMs: COMMAND_WAIT_MS }));
  return deployed.endpointId;
}

async function untilReady(platform: Platform, endpointId: string, options: FirstModelOptions): Promise<void> {
  const fleet = await platform.ports.follow(fleetProjection);
  const waitMs = options.readyWaitMs ?? READY_WAIT_MS;
  try {
    await new Promise<void>((resolve, reject) => {
      const cancel = platform.ports.timers.after(waitMs, () => reject(new Error(`The model was not ready within ${Math.round(waitMs / 1_000)} s. Look at \`npm run penstock -- ps\` and at the log file.`)));
      let last = '';
      const look = (): void => {
        const replicas = replicasOf(fleet.state(), endpointId);
        const newest = [...replicas].sort((a, b) => b.placedAtMs - a.placedAtMs)[0];
        if (newest !== undefined && newest.phase !== last) options.onPhase?.(newest.phase === 'failed' ? `failed: ${newest.reason ?? 'no reason given'}` : newest.phase);
        last = newest?.phase ?? last;
        if (!replicas.some((replica) => replica.phase === 'ready')) return;
        cancel();
        stop();
        resolve();
      };
      const stop = fleet.onChange(look);
      look();
    });
  } finally {
    await fleet.close();
  }
}

function valueOf<Value>(reply: CommandReply<Value>): Value {
  if (reply.kind === 'ok') return reply.value;
  throw new Error(`${reply.refusal.message} (${reply.refusal.code})`);
}

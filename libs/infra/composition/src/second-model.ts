import { join } from 'node:path';
import { deployEndpoint, listEndpoints, registerModelVersion, type CommandReply } from '@penstock/contract-commands';
import { bringEmbeddingModel, embeddingModel } from '@penstock/infra-artifacts';
import { defaultCacheDir } from '@penstock/infra-runtimes';
import { openArtifactCache } from './compose-models.js';
import { openPlatform } from './platform.js';
import type { Environment } from './settings.js';

const COMMAND_WAIT_MS = 30_000;
/** More slots make this model no faster; these keep short requests from waiting behind a long one. */
const SLOTS = 2;
const IDLE_SECONDS = 300;

export interface SecondModel {
  readonly name: string;
  readonly endpointId: string;
}

export interface SecondModelOptions {
  readonly environment: Environment;
  /** Gives up the download. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Registers the embedding model and an endpoint for it that runs nothing until it is first called. Does nothing when the endpoint is
 * there. Throws an error that says why the model cannot be had.
 */
export async function deploySecondModel({ environment, signal }: SecondModelOptions): Promise<SecondModel> {
  const platform = await openPlatform('standalone', environment, { servesCommands: false });
  const { commands } = platform.ports;
  const { name, version, license, digest, contextTokens } = embeddingModel;
  try {
    const { endpoints } = valueOf(await commands.send(listEndpoints, {}, { timeoutMs: COMMAND_WAIT_MS }));
    const existing = endpoints.find((endpoint) => endpoint.name === name);
    if (existing !== undefined) return { name, endpointId: existing.endpointId };
    const path = join(defaultCacheDir({ ...environment }), 'converted', `${name}-${version}.gguf`);
    const source = await bringEmbeddingModel(openArtifactCache(environment), path, { signal });
    const { modelVersionId } = valueOf(await commands.send(registerModelVersion, { modelName: name, version, engine: 'llama.cpp', source, fallbackSources: [], expectedDigest: digest, license }, { timeoutMs: COMMAND_WAIT_MS }));
    const { endpointId } = valueOf(await commands.send(deployEndpoint, {
      name, modelVersionId, organisationId: null,
      hardware: { acceleratorType: 'cpu', acceleratorCount: 1 },
      scaling: { minReplicas: 0, maxReplicas: 1, scaleToZeroAfterIdleSeconds: IDLE_SECONDS },
      serving: { slotsPerReplica: SLOTS, contextTokens, queueMax: 1_024, queueWaitMsMax: 30_000 },
      engineOptions: { embeddings: true },
    }, { timeoutMs: COMMAND_WAIT_MS }));
    return { name, endpointId };
  } finally {
    await platform.close();
  }
}

function valueOf<Value>(reply: CommandReply<Value>): Value {
  if (reply.kind === 'ok') return reply.value;
  throw new Error(`${reply.refusal.message} (${reply.refusal.code})`);
}

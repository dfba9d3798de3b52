import { EngineStartError, type EngineDriver, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { parseEngineOptions } from '../engine-options.js';
import { adoptChild } from '../process/adopt-child.js';
import { startChild } from '../process/start-child.js';
import { adoptAttached, attachEngine } from '../attached/attach-engine.js';

/** More threads than free cores make llama.cpp spin and slow down tenfold, so more than one is asked for on purpose. */
const THREADS_DEFAULT = 1;
const START_TIMEOUT_MS = 300_000;

/** A text is read in one pass, and one that is somewhat too long is answered with both figures instead of a failure. */
const EMBEDDING_BATCH_MIN = 2_048;

/** `engine_options` of a llama.cpp endpoint. */
export const llamaCppOptions = z.strictObject({
  threads: z.int().min(1).max(512).default(THREADS_DEFAULT),
  embeddings: z.boolean().default(false),
  gpu_layers: z.int().min(0).max(1_000).optional(),
});

export interface LlamaCppDriverOptions {
  /**
   * Finds or installs llama.cpp's server: an executable that takes `llama-server`'s flags. Undefined or an exception when it cannot be had.
   */
  readonly locate: () => Promise<{ readonly path: string; readonly version: string } | undefined>;
  readonly startTimeoutMs?: number | undefined;
}

/** llama.cpp's own server as a process of this node. */
export class LlamaCppDriver implements EngineDriver {
  readonly kind = 'llama.cpp';

  constructor(private readonly options: LlamaCppDriverOptions) {}

  async detect(): Promise<{ readonly version: string } | undefined> {
    const located = await this.options.locate().catch(() => undefined);
    return located === undefined ? undefined : { version: located.version };
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if (spec.attachedUrl !== null) return attachEngine(this.kind, spec, spec.attachedUrl);
    const options = parseEngineOptions(llamaCppOptions, spec);
    const { modelPath } = spec;
    if (modelPath === null) throw new EngineStartError('engine_exited', 'llama.cpp needs a GGUF file, and the model version has none.');
    const command = await this.locate();
    return startChild({
      kind: this.kind, spec, command, servedModel: spec.modelName, startTimeoutMs: this.options.startTimeoutMs ?? START_TIMEOUT_MS,
      argsFor: (port) => [
        '--model', modelPath, '--alias', spec.modelName, '--host', '127.0.0.1', '--port', String(port),
        // The server divides its context by the slots.
        '--ctx-size', String(spec.contextTokens * spec.slots), '--parallel', String(spec.slots),
        '--threads', String(options.threads), '--metrics', '--slots', '--jinja',
        ...(options.embeddings ? embeddingFlags(spec.contextTokens) : []),
        ...(options.gpu_layers === undefined ? [] : ['--gpu-layers', String(options.gpu_layers)]),
      ],
    });
  }

  async adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    if (record.pid === null) return adoptAttached(record);
    return adoptChild(record);
  }

  private async locate(): Promise<string> {
    const located = await this.options.locate().catch((error: Error) => {
      throw new EngineStartError('engine_missing', error.message, { cause: error });
    });
    if (located === undefined) throw new EngineStartError('engine_missing', 'llama.cpp is not on this node: put llama-server on the PATH, or make the Python package index reachable.');
    return located.path;
  }
}

function embeddingFlags(contextTokens: number): readonly string[] {
  const batch = String(Math.max(EMBEDDING_BATCH_MIN, contextTokens));
  return ['--embeddings', '--batch-size', batch, '--ubatch-size', batch];
}

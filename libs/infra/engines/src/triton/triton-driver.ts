import { join } from 'node:path';
import { EngineStartError, type EngineDriver, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { parseEngineOptions } from '../engine-options.js';
import { onnxFileOf } from '../onnx/onnx-file.js';
import { adoptChild } from '../process/adopt-child.js';
import { startChild } from '../process/start-child.js';
import { adoptAttachedTriton, attachTriton } from './attach-triton.js';
import { loadFailureOf } from './load-failure.js';
import { SERVED_MODEL, writeModelRepository } from './model-repository.js';
import { metricsPortOf } from './triton-metrics.js';

const START_TIMEOUT_MS = 300_000;
/** An idle connection of a client holds Triton's exit for so long; requests that run are what the drain before it waits for. */
const EXIT_TIMEOUT_SECONDS = 2;
const QUEUE_DEFAULT = 1_024;

/** `engine_options` of an endpoint on Triton. */
export const tritonEngineOptions = z.strictObject({
  threads: z.int().min(1).max(512).default(1),
  instances: z.int().min(1).max(64).default(1),
  /** Rows that Triton may put together from several requests; the model's first dimension has to be open then. */
  max_batch_size: z.int().min(0).max(4_096).default(0),
  max_queue_delay_us: z.int().min(0).max(1_000_000).default(0),
  /** Requests that may wait to be put together; without batches the slots of the endpoint are the limit. */
  queue_max: z.int().min(1).max(100_000).default(QUEUE_DEFAULT),
});

export interface TritonDriverOptions {
  /** Finds or installs Triton: an executable that takes `tritonserver`'s flags; only called when an engine is to start. */
  readonly locate: () => Promise<{ readonly path: string }>;
  /** What is installed at the first start; undefined where it cannot be, so that only running servers are attached. */
  readonly version: string | undefined;
}

/** NVIDIA's Triton Inference Server as a process of this node with one ONNX model, or a running one by its URL. */
export class TritonDriver implements EngineDriver {
  readonly kind = 'triton';

  constructor(private readonly options: TritonDriverOptions) {}

  async detect(): Promise<{ readonly version: string }> {
    return { version: this.options.version ?? 'attached by URL' };
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if (spec.attachedUrl !== null) return attachTriton(spec, spec.attachedUrl);
    const options = parseEngineOptions(tritonEngineOptions, spec);
    const onnxFile = await onnxFileOf(spec.modelPath);
    const triton = await this.options.locate().catch((error: unknown) => {
      throw new EngineStartError('engine_missing', error instanceof Error ? error.message : String(error), { cause: error });
    });
    const folder = join(spec.stateDir, 'triton');
    await writeModelRepository({
      folder, onnxFile, threads: options.threads, instances: options.instances, batchMax: options.max_batch_size, batchDelayMicroseconds: options.max_queue_delay_us, queueMax: options.queue_max,
    });
    const child = startChild({
      kind: this.kind, spec, command: triton.path, servedModel: SERVED_MODEL, startTimeoutMs: START_TIMEOUT_MS,
      argsFor: (port) => [
        `--model-repository=${folder}`, '--http-address=127.0.0.1', `--http-port=${port}`, '--allow-grpc=false',
        '--metrics-address=127.0.0.1', `--metrics-port=${metricsPortOf(port)}`, '--allow-gpu-metrics=false', `--exit-timeout-secs=${EXIT_TIMEOUT_SECONDS}`,
      ],
    });
    return child.catch(async (error: unknown) => {
      const reason = error instanceof EngineStartError && error.code === 'engine_exited' ? await loadFailureOf(spec.logFile) : undefined;
      throw reason === undefined ? error : new EngineStartError('engine_exited', `Triton did not load the model: ${reason}`, { cause: error });
    });
  }

  adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    return record.pid === null ? adoptAttachedTriton(record) : adoptChild(record);
  }
}

import { access } from 'node:fs/promises';
import { EngineStartError, type EngineDriver, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { parseEngineOptions } from '../engine-options.js';
import { adoptChild } from '../process/adopt-child.js';
import { startChild } from '../process/start-child.js';
import { onnxFileOf } from './onnx-file.js';

/** A large model takes its time to be optimised. */
const START_TIMEOUT_MS = 300_000;
const QUEUE_DEFAULT = 1_024;

/** `engine_options` of an endpoint on ONNX Runtime. */
export const onnxEngineOptions = z.strictObject({
  /** Threads of one inference; 0 takes one for each core. */
  threads: z.int().min(0).max(512).default(1),
  queue_max: z.int().min(0).max(100_000).default(QUEUE_DEFAULT),
});

export interface OnnxDriverOptions {
  /** The built `main.js` of the engine. */
  readonly scriptPath: string;
  /** Finds or installs `onnxruntime-node`, whose main module it gives; only called when an engine is to start. */
  readonly locate: () => Promise<{ readonly path: string }>;
  /** What is installed at the first start. */
  readonly version: string;
  /** The Node executable; the default is the one that runs this process. */
  readonly nodePath?: string | undefined;
}

/** ONNX Runtime in a process of its own, behind the Open Inference Protocol. */
export class OnnxDriver implements EngineDriver {
  readonly kind = 'onnx';

  constructor(private readonly options: OnnxDriverOptions) {}

  /** Looks for the program only: the runtime is fetched when a model needs it. */
  async detect(): Promise<{ readonly version: string } | undefined> {
    return access(this.options.scriptPath).then(() => ({ version: this.options.version }), () => undefined);
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if ((await this.detect()) === undefined) throw new EngineStartError('engine_missing', `The ONNX engine is not built: ${this.options.scriptPath} is missing. Run npm run build.`);
    const options = parseEngineOptions(onnxEngineOptions, spec);
    const modelFile = await onnxFileOf(spec.modelPath);
    const runtime = await this.options.locate().catch((error: unknown) => {
      throw new EngineStartError('engine_missing', error instanceof Error ? error.message : String(error), { cause: error });
    });
    return startChild({
      kind: this.kind, spec, command: this.options.nodePath ?? process.execPath, servedModel: spec.modelName, startTimeoutMs: START_TIMEOUT_MS,
      argsFor: (port) => [
        this.options.scriptPath, '--port', String(port), '--model-name', spec.modelName, '--model-path', modelFile, '--runtime', runtime.path,
        '--threads', String(options.threads), '--slots', String(spec.slots), '--queue-max', String(options.queue_max),
      ],
    });
  }

  adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    return adoptChild(record);
  }
}

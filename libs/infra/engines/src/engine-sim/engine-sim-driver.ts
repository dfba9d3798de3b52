import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { adapterSlotsOf } from '@penstock/domain-catalog';
import { EngineStartError, type EngineDriver, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { parseEngineOptions } from '../engine-options.js';
import { adoptChild } from '../process/adopt-child.js';
import { startChild } from '../process/start-child.js';
import { adoptAttached, attachEngine } from '../attached/attach-engine.js';

const START_TIMEOUT_MS = 30_000;

/** `engine_options` of an endpoint on the simulated engine. */
export const engineSimOptions = z.strictObject({
  tokens_per_second: z.number().min(0).max(1_000_000).optional(),
  prefill_ms: z.number().min(0).max(600_000).optional(),
  max_num_queued_reqs: z.int().min(0).optional(),
  /** Takes the time of a real engine, such as `h100-llama-3.1-8b`, and a cache of its size. */
  timing_model: z.string().min(1).max(100).optional(),
  time_scale: z.number().positive().max(1_000).optional(),
  num_gpu_blocks_override: z.int().min(1).max(100_000_000).optional(),
  max_num_batched_tokens: z.int().min(1).max(1_000_000).optional(),
  /** Adapters that its accelerator holds at once, and what bringing one there takes. */
  max_loras: z.int().min(1).max(1_000).optional(),
  lora_load_ms: z.number().min(0).max(600_000).optional(),
  fault_injection: z.boolean().default(false),
  fault: z.string().max(200).optional(),
});

export interface EngineSimDriverOptions {
  /** The built `main.js` of the simulated engine. */
  readonly scriptPath: string;
  /** The Node executable; the default is the one that runs this process. */
  readonly nodePath?: string | undefined;
  readonly version: string;
  /** Where every engine of this node appends its truth ledger; the default is a file in the replica's state folder. */
  readonly ledger?: string | undefined;
}

/** The simulated engine as a process of this node: vLLM's surface, and a truth ledger of every token. */
export class EngineSimDriver implements EngineDriver {
  readonly kind = 'engine-sim';

  constructor(private readonly options: EngineSimDriverOptions) {}

  async detect(): Promise<{ readonly version: string } | undefined> {
    return access(this.options.scriptPath).then(() => ({ version: this.options.version }), () => undefined);
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if (spec.attachedUrl !== null) return attachEngine(this.kind, spec, spec.attachedUrl);
    const options = parseEngineOptions(engineSimOptions, spec);
    if ((await this.detect()) === undefined) throw new EngineStartError('engine_missing', `The simulated engine is not built: ${this.options.scriptPath} is missing. Run npm run build.`);
    const flag = (name: string, value: string | number | undefined): string[] => (value === undefined ? [] : [`--${name}`, String(value)]);
    return startChild({
      kind: this.kind, spec, command: this.options.nodePath ?? process.execPath, servedModel: spec.modelName, startTimeoutMs: START_TIMEOUT_MS,
      argsFor: (port) => [
        this.options.scriptPath, '--port', String(port), '--model', spec.modelName,
        '--max-num-seqs', String(spec.slots), '--max-model-len', String(spec.contextTokens),
        '--ledger', this.options.ledger ?? join(spec.stateDir, 'truth-ledger.jsonl'),
        ...flag('tokens-per-second', options.tokens_per_second), ...flag('prefill-ms', options.prefill_ms),
        ...flag('timing-model', options.timing_model), ...flag('time-scale', options.time_scale),
        ...flag('num-gpu-blocks-override', options.num_gpu_blocks_override), ...flag('max-num-batched-tokens', options.max_num_batched_tokens),
        ...adapterFlags(spec), ...flag('lora-load-ms', options.lora_load_ms),
        ...flag('max-num-queued-reqs', options.max_num_queued_reqs), ...flag('fault', options.fault),
        ...(options.fault_injection ? ['--fault-injection'] : []),
      ],
    });
  }

  async adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    return record.pid === null ? adoptAttached(record) : adoptChild(record);
  }
}

function adapterFlags({ adapters = [], options }: EngineStartSpec): readonly string[] {
  return adapters.length === 0 ? [] : ['--lora-modules', adapters.join(','), '--max-loras', String(adapterSlotsOf(adapters.length, options))];
}

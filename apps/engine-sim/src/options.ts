import { parseArgs } from 'node:util';
import { z } from 'zod';

/** Settings of the simulated engine, from command-line flags such as `--max-model-len 2048`. */
export const simOptions = z.object({
  host: z.string().default('127.0.0.1'),
  /** 0 takes a free port. */
  port: z.coerce.number().int().min(0).max(65_535).default(0),
  model: z.string().min(1).max(500).default('sim'),
  /** For each sequence; 0 produces as fast as the machine can. */
  'tokens-per-second': z.coerce.number().min(0).max(1_000_000).default(0),
  /** Time before the first token, for each sequence. */
  'prefill-ms': z.coerce.number().min(0).max(600_000).default(0),
  'max-num-seqs': z.coerce.number().int().min(1).max(100_000).default(64),
  /** Running and waiting requests together; one more is refused with 503. 0 sets no limit, as in vLLM. */
  'max-num-queued-reqs': z.coerce.number().int().min(0).max(1_000_000).default(0),
  'max-model-len': z.coerce.number().int().min(16).max(10_000_000).default(4_096),
  /** Takes the time of a real engine instead of `tokens-per-second` and `prefill-ms`: a name such as `h100-llama-3.1-8b`. */
  'timing-model': z.string().min(1).max(100).optional(),
  /** What the model's durations are multiplied with: 0.1 makes an engine ten times as fast. */
  'time-scale': z.coerce.number().positive().max(1_000).default(1),
  /** Relative standard deviation of a step's duration, and what it is drawn from. */
  'timing-jitter': z.coerce.number().min(0).max(0.5).default(0),
  'timing-seed': z.coerce.number().int().min(0).default(1),
  'max-num-batched-tokens': z.coerce.number().int().min(1).max(1_000_000).default(2_048),
  /** Blocks of the key-value cache; without it what the accelerators of the timing model hold. */
  'num-gpu-blocks-override': z.coerce.number().int().min(1).max(100_000_000).optional(),
  /** A full cache throws the youngest sequence back into the queue, or ends the engine. */
  'when-cache-is-full': z.enum(['preempt', 'out-of-memory']).default('preempt'),
  /** Names of adapters, with commas between; each is served under its own name. */
  'lora-modules': z.string().max(10_000).default('').transform((names) => names.split(',').filter((name) => name !== '')),
  /** Adapters that run at once, by the timing model. */
  'max-loras': z.coerce.number().int().min(1).max(1_000).default(1),
  /** What a step takes longer when it brings an adapter onto the accelerator: a hundred megabytes over PCIe, out of the host's memory. In milliseconds of the timing model. */
  'lora-load-ms': z.coerce.number().min(0).max(600_000).default(100),
  /** Truth ledger: one JSON line at the start and one at the end of each request is appended to this file. */
  ledger: z.string().min(1).max(4_096).optional(),
  /** Allows faults: by header, by `POST /sim/fault`, by `--fault`. */
  'fault-injection': z.boolean().default(false),
  /** A fault for every request, such as `die-after=5`. */
  fault: z.string().max(200).optional(),
});
export type SimOptions = z.output<typeof simOptions>;

/** Throws an error whose message names each wrong flag. */
export function parseOptions(args: readonly string[]): SimOptions {
  const { values } = parseArgs({
    args: [...args],
    options: Object.fromEntries(Object.keys(simOptions.shape).map((name) => [name, { type: name === 'fault-injection' ? ('boolean' as const) : ('string' as const) }])),
  });
  const parsed = simOptions.safeParse(values);
  if (parsed.success) return parsed.data;
  throw new Error(parsed.error.issues.map((issue) => `--${issue.path.join('.')}: ${issue.message}`).join('; '));
}

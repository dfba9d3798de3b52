import { parseArgs } from 'node:util';
import { z } from 'zod';

/** Settings of the engine, from command-line flags such as `--model-path /models/a.onnx`. */
export const onnxOptions = z.object({
  host: z.string().default('127.0.0.1'),
  /** 0 takes a free port. */
  port: z.coerce.number().int().min(0).max(65_535).default(0),
  'model-path': z.string().min(1).max(4_096),
  'model-name': z.string().min(1).max(500),
  'model-version': z.string().min(1).max(100).default('1'),
  /** The main module of the package `onnxruntime-node`. */
  runtime: z.string().min(1).max(4_096),
  /** Threads that one inference may use; 0 takes one for each core. */
  threads: z.coerce.number().int().min(0).max(512).default(1),
  /** Inferences worked on at once. */
  slots: z.coerce.number().int().min(1).max(1_024).default(4),
  /** Inferences that may wait; one more is refused with 503. */
  'queue-max': z.coerce.number().int().min(0).max(100_000).default(1_024),
});
export type OnnxOptions = z.output<typeof onnxOptions>;

/** Throws an error whose message names each wrong flag. */
export function parseOptions(args: readonly string[]): OnnxOptions {
  const { values } = parseArgs({ args: [...args], options: Object.fromEntries(Object.keys(onnxOptions.shape).map((name) => [name, { type: 'string' as const }])) });
  const parsed = onnxOptions.safeParse(values);
  if (parsed.success) return parsed.data;
  throw new Error(parsed.error.issues.map((issue) => `--${issue.path.join('.')}: ${issue.message}`).join('; '));
}

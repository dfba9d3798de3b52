import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const curve = z.object({ at: z.array(z.number()), value: z.array(z.number()) });
const log = z.object({
  name: z.string(), profile: z.string(), layers: z.int(), kvTokens: z.int(), sequencesMax: z.int(), batchTokensMax: z.int(),
  host: z.object({ decodeStepMs: curve, mixedStepMs: z.number(), allReduceUs: curve }).optional(),
});
const shape = z.object({ parameters: z.number(), layers: z.number(), hidden: z.number(), kvHeads: z.number(), headSize: z.number(), vocabulary: z.number() });
const memory = z.object({ model: z.string(), shape, memoryBytes: z.number(), tensorParallel: z.number(), kvTokens: z.number() });
const facts = z.object({
  logs: z.object({ rows: z.array(log) }),
  sharedPrefixes: z.object({ every: z.int(), distance: z.int(), share: z.number() }),
  memory: z.object({ rows: z.array(memory) }),
});

export type LogFacts = z.output<typeof log>;
export type SharedPrefixes = z.output<typeof facts>['sharedPrefixes'];

/** What the bench knows about the measured engines besides their logs; the sources stand in the file. */
export function readFacts(): z.output<typeof facts> {
  return facts.parse(JSON.parse(readFileSync(join(import.meta.dirname, 'facts.json'), 'utf8')));
}

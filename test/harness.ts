import { randomInt } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** What one bench, drill or conformance run reports. */
export interface Report {
  /** Named figures; ratios and counts, so that noisy machines do not change their meaning. */
  readonly figures: Readonly<Record<string, unknown>>;
  readonly pass: boolean;
  /** More for people: absolute rates, durations, what was seen. */
  readonly detail?: unknown;
}

export interface RunContext {
  /** Every random choice derives from it, so that a run can be repeated. */
  readonly seed: number;
  /** The words and flags after the name. */
  readonly args: readonly string[];
  /** Progress for people, on standard error. */
  say(text: string): void;
}

export type Run = (context: RunContext) => Promise<Report>;

const folders: Readonly<Record<string, string>> = { bench: 'benchmarks', drill: 'drills', conformance: 'conformance', contracts: 'contracts' };
const SEED_MAX = 2 ** 31;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<number> {
  const kind = process.argv[2] ?? '';
  const folder = folders[kind];
  if (folder === undefined) throw new Error(`Unknown kind ${kind}: use ${Object.keys(folders).join(', ')}.`);
  const { values, positionals, tokens } = parseArgs({ args: process.argv.slice(3), options: { json: { type: 'boolean', default: false }, seed: { type: 'string' } }, allowPositionals: true, strict: false, tokens: true });
  const base = join(import.meta.dirname, folder);
  const fixed = kind === 'conformance' || kind === 'contracts';
  const name = fixed ? (positionals[0] ?? kind) : (positionals[0] ?? '');
  const file = [join(base, name, 'run.js'), ...(fixed ? [join(base, 'run.js')] : [])].find((path) => existsSync(path));
  if (file === undefined) {
    const known = existsSync(base) ? readdirSync(base, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name) : [];
    say(`There is no ${kind} "${name}". Known: ${known.join(', ') || 'none yet'}. For example: npm run ${kind} -- ${known[0] ?? 'NAME'} --json`);
    return 2;
  }
  const seed = typeof values['seed'] === 'string' ? Number(values['seed']) : randomInt(SEED_MAX);
  const args = tokens.filter((token) => token.kind !== 'option' || (token.name !== 'json' && token.name !== 'seed')).map((token) => process.argv.slice(3)[token.index] ?? '');
  const { run } = (await import(file)) as { run: Run };
  say(`${kind} ${name}, seed ${seed}`);
  const report = await run({ seed, args: args.filter((word) => word !== name), say });
  if (values['json'] !== true) say(JSON.stringify({ figures: report.figures, detail: report.detail }, undefined, 2));
  process.stdout.write(`${JSON.stringify({ name, figures: report.figures, pass: report.pass, seed, ...(report.detail === undefined ? {} : { detail: report.detail }) })}\n`);
  return report.pass ? 0 : 1;
}

// Somebody who interrupts a run leaves nothing of it behind: children end when this process exits.
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) process.once(signal, () => process.exit(code));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.stdout.write(`${JSON.stringify({ name: process.argv[3] ?? '', figures: {}, pass: false, seed: 0, error: error instanceof Error ? error.message : String(error) })}\n`);
    process.exit(1);
  },
);

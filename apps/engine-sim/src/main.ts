import { parseOptions } from './options.js';
import { startSim } from './server.js';

/** Runs the simulated engine until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const sim = await startSim(parseOptions(process.argv.slice(2)));
  process.stdout.write(`listening on ${sim.url}\n`);
  let closing: Promise<void> | undefined;
  const stop = (): void => {
    closing ??= sim.close().finally(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

await main().catch((error: unknown) => {
  process.stderr.write(`engine-sim cannot start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});

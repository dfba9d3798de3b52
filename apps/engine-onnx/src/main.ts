import { parseOptions } from './options.js';
import { startOnnxServer } from './server.js';

/** Runs the engine until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const server = await startOnnxServer(parseOptions(process.argv.slice(2)));
  process.stdout.write(`listening on ${server.url}\n`);
  let closing: Promise<void> | undefined;
  const stop = (): void => {
    closing ??= server.close().finally(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

await main().catch((error: unknown) => {
  process.stderr.write(`engine-onnx cannot start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});

import { deployFirstModel, operatorEnvironment, startProcessTracing, startStandalone, stopSignal } from '@penstock/infra-composition';

// The platform in one process without a terminal: settings from the environment, one JSON line when it is up.
const stopping = stopSignal();
const tracing = startProcessTracing('penstock', process.env);
const port = process.env['HTTP_PORT'];
const platform = await startStandalone({ host: process.env['HTTP_HOST'], ...(port === undefined ? {} : { port: Number(port) }) });
const model = process.env['PENSTOCK_DEFAULT_MODEL'] === 'false'
  ? undefined
  : await deployFirstModel({ environment: operatorEnvironment(platform.settings), randomModelPath: platform.instance.path('models', 'random.gguf') });
process.stdout.write(`${JSON.stringify({ url: platform.url, model: model?.name ?? null, pid: process.pid })}\n`);
await stopping;
await platform.close();
await tracing.stop();
process.exit(0);

import { fileURLToPath } from 'node:url';
import { FACADE_CONFIG_VARIABLE, type FacadeConfig } from '../clickhouse-facade/facade-config.js';
import { startChildServer, type RunningServer } from '../process/child-server.js';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;
const PROBE_TIMEOUT_MS = 1_000;

export interface ClickhouseServerOptions {
  /** The chdb module in the cache. */
  readonly path: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** Created when it does not exist; queries that name no database use it. */
  readonly database: string;
  /** Told of the process at once, before it is ready. */
  readonly onSpawn?: ((pid: number) => void) | undefined;
}

/** Starts ClickHouse (chdb) behind ClickHouse's own HTTP interface, in a process of its own. */
export async function startClickhouse(options: ClickhouseServerOptions): Promise<RunningServer> {
  const { path, logFile, onSpawn: _onSpawn, ...rest } = options;
  const config: FacadeConfig = { chdbModule: path, ...rest };
  return startChildServer({
    name: 'clickhouse', command: process.execPath, args: facadeArguments(), logFile,
    env: { ...withoutNodeOptions(process.env), [FACADE_CONFIG_VARIABLE]: JSON.stringify(config) },
    port: options.port, url: `http://127.0.0.1:${options.port}`,
    stopSignal: 'SIGTERM', stopTimeoutMs: STOP_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS,
    onSpawn: options.onSpawn,
    isReady: () => answersPing(options.port),
  });
}

/** Built, the façade is JavaScript. From the sources (in tests) Node itself strips the types; only the import names need a hint. */
function facadeArguments(): string[] {
  const isBuilt = import.meta.url.endsWith('.js');
  const main = fileURLToPath(new URL(`../clickhouse-facade/main.${isBuilt ? 'js' : 'ts'}`, import.meta.url));
  if (isBuilt) return [main];
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ resolve: (name, context, next) => next(context.parentURL?.endsWith('.ts') && name.startsWith('.') ? name.replace(/\\.js$/, '.ts') : name, context) });`;
  return ['--no-warnings', '--experimental-transform-types', '--import', `data:text/javascript,${encodeURIComponent(hook)}`, main];
}

/** Options meant for this process, such as a test runner's, must not reach the child. */
function withoutNodeOptions(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _dropped, ...rest } = env;
  return rest;
}

async function answersPing(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/ping`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  return (await response.text()) === 'Ok.\n';
}

import { mkdir } from 'node:fs/promises';
import type { RunningService } from '@penstock/feature-shell';
import { ensureRuntime, findFreePort, isPortFree, openInstance, startEmbedded, type EmbeddedServers, type Instance, type OnInstallProgress, type OnServerEvent } from '@penstock/infra-runtimes';
import { natsUsers, natsServiceUrls } from './nats-users.js';
import { composeAutoscaler, composeRouter, composeScheduler } from './compose-control-plane.js';
import { composeBatch, composeGateway, composeMetering } from './compose-data-plane.js';
import { composeAgent, composeRegistry } from './compose-models.js';
import { GATEWAY_PROCESSES_MAX, startMoreGateways } from './more-gateways.js';
import { serviceEnvironments, type InstallationSettings, type ServiceName } from './service-environments.js';
import type { Environment } from './settings.js';

export const GATEWAY_PORT_DEFAULT = 8_080;

export interface StandaloneOptions {
  /** Default: `PENSTOCK_HOME`, else `.penstock` in the current folder. */
  readonly dataDir?: string | undefined;
  /** A port that must be free; without one, the port of the last start, 8080, or any free one, in that order. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly environment?: Environment | undefined;
  /** Services to leave out, for tests that run them elsewhere. */
  readonly without?: readonly ServiceName[] | undefined;
  readonly onInstall?: OnInstallProgress | undefined;
  readonly onServerEvent?: OnServerEvent | undefined;
  /** Told of each part of the start and how long it took. */
  readonly onStep?: ((name: string, ms: number) => void) | undefined;
  /** Force NATS to write to disk before it acknowledges; slower, for tests of power loss. */
  readonly syncAlways?: boolean | undefined;
}

/** The whole platform in this process, on embedded servers. */
export interface Standalone {
  readonly url: string;
  readonly adminKey: string;
  readonly instance: Instance;
  readonly servers: EmbeddedServers;
  readonly settings: InstallationSettings;
  readonly services: ReadonlyMap<ServiceName, RunningService>;
  /** Drains the services, stops engines and servers, and frees the data folder. Safe to call twice. */
  close(): Promise<void>;
}

/** The port that was asked for is taken. */
export class PortTakenError extends Error {
  override readonly name = 'PortTakenError';
  constructor(readonly port: number) {
    super(`Port ${port} is taken by another program. Stop that program, or choose another port: npm run up -- --port ${port + 1}`);
  }
}

/** The order in which services start: each finds what it asks for; the agent is last, so its node joins a platform that is there. */
const START_ORDER: readonly (readonly [ServiceName, (environment: Environment) => Promise<RunningService>])[] = [
  ['registry', composeRegistry],
  ['scheduler', composeScheduler],
  ['autoscaler', composeAutoscaler],
  ['router', composeRouter],
  ['metering', composeMetering],
  ['gateway', composeGateway],
  ['batch', composeBatch],
  ['agent', composeAgent],
];

/** Brings everything up, or cleans up and throws an error that says what to do. */
export async function startStandalone(options: StandaloneOptions = {}): Promise<Standalone> {
  const environment = options.environment ?? process.env;
  const step = stopwatch(options.onStep);
  const instance = await openInstance({ dataDir: options.dataDir, env: { ...environment } });
  const closers: (() => Promise<void>)[] = [() => instance.close()];
  const close = once(async () => {
    for (const closer of closers.reverse()) await closer();
  });
  try {
    const gatewayPort = await chooseGatewayPort(instance, options.port);
    const engine = step('install the engine', ensureRuntime('llama-server', { cacheDir: instance.cacheDir, onProgress: options.onInstall }).catch(() => undefined));
    const servers = await step('start NATS, PostgreSQL and ClickHouse', startEmbedded(instance, {
      onProgress: options.onInstall,
      onEvent: options.onServerEvent,
      natsUsers: natsUsers(),
      ...(options.syncAlways === true ? { natsSyncInterval: 'always' as const } : {}),
    }));
    closers.push(() => servers.stop());
    await engine;
    const settings = await installationSettings(instance, servers, gatewayPort, options.host ?? '127.0.0.1', environment);
    const services = await step('start the services', startServices(settings, options.without ?? [], closers));
    const more = (settings.gatewayProcesses ?? 1) - 1;
    if (more > 0) {
      const gateways = await step('start more gateways', startMoreGateways({ environment: serviceEnvironments(settings).gateway, count: more, logFolder: instance.path('logs') }));
      closers.push(() => gateways.close());
    }
    const url = services.get('gateway')?.url ?? `http://127.0.0.1:${gatewayPort}`;
    await instance.announce(url);
    return { url, adminKey: instance.secrets.adminKey, instance, servers, settings, services, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startServices(settings: InstallationSettings, without: readonly ServiceName[], closers: (() => Promise<void>)[]): Promise<Map<ServiceName, RunningService>> {
  const environments = serviceEnvironments(settings);
  const services = new Map<ServiceName, RunningService>();
  for (const [name, compose] of START_ORDER) {
    if (without.includes(name)) continue;
    const service = await compose(environments[name]);
    services.set(name, service);
    closers.push(() => service.close());
  }
  return services;
}

async function installationSettings(instance: Instance, servers: EmbeddedServers, gatewayPort: number, gatewayHost: string, passed: Environment): Promise<InstallationSettings> {
  await mkdir(instance.path('logs'), { recursive: true, mode: 0o700 });
  return {
    natsUrl: servers.natsUrl,
    natsServiceUrls: natsServiceUrls(servers),
    databaseUrl: servers.databaseUrl,
    clickhouseUrl: servers.clickhouseUrl,
    objects: servers.objects,
    dataDir: instance.dataDir,
    logFile: instance.path('logs', 'penstock.log'),
    gatewayHost,
    gatewayPort,
    gatewayProcesses: gatewayProcesses(passed),
    adminKey: instance.secrets.adminKey,
    keyPepper: instance.secrets.apiKeyPepper,
    internalToken: instance.secrets.internalToken,
    passed,
  };
}

/** How many gateways share the port, from `GATEWAY_PROCESSES`. */
function gatewayProcesses(environment: Environment): number {
  const given = environment['GATEWAY_PROCESSES'] ?? '1';
  const count = Number(given === '' ? '1' : given);
  if (!Number.isInteger(count) || count < 1 || count > GATEWAY_PROCESSES_MAX) throw new RangeError(`GATEWAY_PROCESSES is ${given}; set it to a whole number from 1 to ${GATEWAY_PROCESSES_MAX}, at most one for each core.`);
  return count;
}

async function chooseGatewayPort(instance: Instance, asked: number | undefined): Promise<number> {
  if (asked !== undefined && asked !== 0) {
    if (!(await isPortFree(asked))) throw new PortTakenError(asked);
    await instance.state.setPort('gateway', asked);
    return asked;
  }
  const wishes = asked === 0 ? [] : [instance.state.port('gateway'), GATEWAY_PORT_DEFAULT];
  for (const port of wishes) {
    if (port === undefined || !(await isPortFree(port))) continue;
    await instance.state.setPort('gateway', port);
    return port;
  }
  const port = await findFreePort();
  await instance.state.setPort('gateway', port);
  return port;
}

function stopwatch(onStep: StandaloneOptions['onStep']): <Value>(name: string, work: Promise<Value>) => Promise<Value> {
  return async (name, work) => {
    const startedMs = performance.now();
    const value = await work;
    onStep?.(name, performance.now() - startedMs);
    return value;
  };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}

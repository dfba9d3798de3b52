import { mkdtemp, mkdir, readFile, rm, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { natsServiceUrls, natsUsers, serviceEnvironments, serviceNames, type Environment, type InstallationSettings, type ServiceName } from '@penstock/infra-composition';
import { findFreePort, openInstance, startEmbedded, type EmbeddedServers, type Instance } from '@penstock/infra-runtimes';
import { ServiceProcess } from './service-process.js';

/** Other users must be able to walk through a folder of root's, since PostgreSQL runs as one of them. */
const WALKABLE = 0o711;

export interface InstallationOptions {
  readonly root: string;
  /** More settings for every service. */
  readonly environment?: Environment | undefined;
}

/** A whole installation in a temporary folder, each service a process of its own, on embedded servers. */
export class Installation {
  private constructor(
    readonly folder: string,
    readonly instance: Instance,
    readonly servers: EmbeddedServers,
    readonly settings: InstallationSettings,
    readonly services: ReadonlyMap<ServiceName, ServiceProcess>,
    private readonly options: InstallationOptions,
  ) {}

  private readonly added: ServiceProcess[] = [];

  static async start(options: InstallationOptions): Promise<Installation> {
    const folder = await mkdtemp(join(tmpdir(), 'penstock-installation-'));
    await chmod(folder, WALKABLE);
    const instance = await openInstance({ dataDir: join(folder, 'data'), env: cleanEnvironment() });
    const servers = await startEmbedded(instance, { restartsByItself: false, natsUsers: natsUsers() });
    await mkdir(instance.path('logs'), { recursive: true });
    const { secrets } = instance;
    const settings: InstallationSettings = {
      natsUrl: servers.natsUrl,
      natsServiceUrls: natsServiceUrls(servers),
      databaseUrl: servers.databaseUrl,
      clickhouseUrl: servers.clickhouseUrl,
      objects: servers.objects,
      dataDir: instance.dataDir,
      logFile: undefined,
      gatewayHost: '127.0.0.1',
      gatewayPort: await findFreePort(),
      adminKey: secrets.adminKey,
      keyPepper: secrets.apiKeyPepper,
      internalToken: secrets.internalToken,
      passed: { ...cleanEnvironment(), ...options.environment },
    };
    const environments = serviceEnvironments(settings);
    const services = new Map<ServiceName, ServiceProcess>();
    for (const name of serviceNames) {
      const port = name === 'gateway' ? settings.gatewayPort : await findFreePort();
      services.set(name, new ServiceProcess(name, options.root, defined({ ...environments[name], ...options.environment }), port, instance.path('logs', `${name}.log`)));
    }
    const installation = new Installation(folder, instance, servers, settings, services, options);
    try {
      for (const service of services.values()) await service.start();
      return installation;
    } catch (error) {
      await installation.close();
      throw error;
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.settings.gatewayPort}`;
  }

  service(name: ServiceName): ServiceProcess {
    const found = this.services.get(name);
    if (found === undefined) throw new Error(`no service ${name}`);
    return found;
  }

  /** A further gateway on an address of its own; it has its own spool and is stopped with the rest. */
  async addGateway(): Promise<ServiceProcess> {
    const name = `gateway-${this.added.length + 2}`;
    const environment = defined({ ...serviceEnvironments(this.settings).gateway, ...this.options.environment, DATA_DIR: this.instance.path(name) });
    const gateway = new ServiceProcess('gateway', this.options.root, environment, await findFreePort(), this.instance.path('logs', `${name}.log`));
    await gateway.start();
    this.added.push(gateway);
    return gateway;
  }

  /** Stops the services in an orderly way, then the servers, and removes the folder unless it is to be looked at. */
  async close(keep = false): Promise<void> {
    for (const service of this.added) await service.stop();
    for (const name of [...serviceNames].reverse()) await this.services.get(name)?.stop();
    // An agent that keeps its engines has left them to an agent that does not come.
    for (const { pid } of await this.engines()) endProcess(pid);
    await this.servers.stop();
    await this.instance.close();
    if (!keep) await rm(this.folder, { recursive: true, force: true });
  }

  /** The engines that the agent runs, or that it left to the next one. */
  async engines(): Promise<readonly { readonly kind: string; readonly pid: number }[]> {
    const text = await readFile(join(this.instance.dataDir, 'agent', 'engines.json'), 'utf8').catch(() => '{"engines":[]}');
    const memory = JSON.parse(text) as { engines: { kind: string; pid: number | null }[] };
    return memory.engines.flatMap(({ kind, pid }) => (pid === null ? [] : [{ kind, pid }]));
  }

  /** A call with the installation's own admin key. */
  async admin(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.settings.adminKey}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: HTTP ${answer.status}: ${text}`);
    return JSON.parse(text) as unknown;
  }
}

/** Settings of another installation must not reach this one. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const foreign = ['NATS_URL', 'DATABASE_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT', 'PENSTOCK_HOME', 'HTTP_PORT', 'HTTP_HOST'];
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.includes(name)));
}

function defined(environment: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

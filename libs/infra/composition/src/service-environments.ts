import type { NatsServiceName } from '@penstock/infra-nats';
import type { ObjectStoreSettings } from '@penstock/infra-runtimes';
import type { Environment } from './settings.js';

export const serviceNames = ['registry', 'scheduler', 'autoscaler', 'router', 'metering', 'gateway', 'batch', 'agent'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** One machine's installation, from which the settings of every service follow. */
export interface InstallationSettings {
  readonly natsUrl: string;
  /** NATS with each service's own user; left out where one user serves all. */
  readonly natsServiceUrls?: Readonly<Record<NatsServiceName, string>> | undefined;
  readonly databaseUrl: string;
  readonly clickhouseUrl: string;
  readonly objects: ObjectStoreSettings;
  readonly dataDir: string;
  readonly logFile: string | undefined;
  readonly gatewayHost: string;
  readonly gatewayPort: number;
  /** Gateways on that port, each a process; the first one lives with the other services. Default: 1. */
  readonly gatewayProcesses?: number | undefined;
  readonly adminKey: string;
  readonly keyPepper: string;
  readonly internalToken: string;
  /** What the operator set, which wins over nothing here: tracing, log level, hub, cache. */
  readonly passed: Environment;
}

/** Settings that reach every service when the operator sets them. */
const PASSED = ['LOG_LEVEL', 'DRAIN_TIMEOUT_MS', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_TRACES_SAMPLER_ARG', 'HF_ENDPOINT', 'HF_TOKEN', 'ARTIFACT_CACHE_DIR', 'PENSTOCK_CACHE', 'HOME', 'PATH', 'ENGINE_SIM_LEDGER', 'NATS_CA', 'NATS_REPLICAS', 'PYTHON'] as const;

/** Settings of an agent that stands for a Kubernetes cluster. */
const KUBERNETES = [
  'AGENT_DRIVER', 'KUBECONFIG', 'KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'KUBERNETES_CLUSTER', 'KUBERNETES_NAMESPACE', 'KUBERNETES_ENGINE_IMAGES', 'KUBERNETES_HUB_TOKEN_SECRET',
  'KUBERNETES_MODEL_CACHE_CLAIM', 'KUBERNETES_RUNTIME_CLASS', 'KUBERNETES_DRA_DRIVER', 'KUBERNETES_ENGINE_URL',
] as const;

/** Settings of an agent that stands for a fleet that does not exist. */
const SIMULATED = ['SIMULATED_FLEET', 'SIMULATED_ENGINES_MAX', 'ENGINE_SIM_SCRIPT'] as const;

/** How often an agent looks at its engines, and how often it says what they showed. */
const LOOKS = ['TELEMETRY_INTERVAL_MS', 'PROFILE_INTERVAL_MS'] as const;

/** Drivers that stand for many nodes and have the rights of one service instead of one node's agent. */
const FLEET_DRIVERS: readonly (string | undefined)[] = ['kubernetes', 'simulated'];

/** The environment of each service of one installation: each gets what it needs and no secret beyond. */
export function serviceEnvironments(settings: InstallationSettings): Readonly<Record<ServiceName, Environment>> {
  const passed = Object.fromEntries(PASSED.map((name) => [name, settings.passed[name]]));
  const common = { ...passed, LOG_FILE: settings.logFile };
  const nats = (name: NatsServiceName): Environment => ({ NATS_URL: settings.natsServiceUrls?.[name] ?? settings.natsUrl });
  const database = { DATABASE_URL: settings.databaseUrl };
  const objects = objectSettings(settings.objects);
  return {
    registry: { ...common, ...nats('registry'), ...database },
    scheduler: { ...common, ...nats('scheduler'), ...database },
    autoscaler: { ...common, ...nats('autoscaler'), ...database },
    router: { ...common, ...nats('router') },
    metering: { ...common, ...nats('metering'), ...database, CLICKHOUSE_URL: settings.clickhouseUrl },
    gateway: {
      ...common,
      ...nats('gateway'),
      ...objects,
      HTTP_HOST: settings.gatewayHost,
      HTTP_PORT: String(settings.gatewayPort),
      HTTP_REUSE_PORT: String((settings.gatewayProcesses ?? 1) > 1),
      DATA_DIR: `${settings.dataDir}/gateway`,
      ADMIN_KEY: settings.adminKey,
      KEY_PEPPER: settings.keyPepper,
      CACHE_SALT_KEY: settings.passed['CACHE_SALT_KEY'],
      INTERNAL_TOKEN: settings.internalToken,
    },
    batch: { ...common, ...nats('batch'), ...database, ...objects, GATEWAY_URL: `http://127.0.0.1:${settings.gatewayPort}`, INTERNAL_TOKEN: settings.internalToken },
    agent: { ...common, ...nats(FLEET_DRIVERS.includes(settings.passed['AGENT_DRIVER']) ? 'replica-driver' : 'agent'), ...Object.fromEntries([...KUBERNETES, ...SIMULATED, ...LOOKS].map((name) => [name, settings.passed[name]])), AGENT_DATA_DIR: `${settings.dataDir}/agent` },
  };
}

/** Settings for what the operator does from this process: the installation's own NATS user, and no database. */
export function operatorEnvironment(settings: InstallationSettings): Environment {
  return { ...Object.fromEntries(PASSED.map((name) => [name, settings.passed[name]])), LOG_FILE: settings.logFile, NATS_URL: settings.natsUrl };
}

function objectSettings(objects: ObjectStoreSettings): Environment {
  if (objects.kind === 'filesystem') return { OBJECTS_DIR: objects.root };
  return {
    S3_ENDPOINT: objects.endpoint,
    S3_REGION: objects.region,
    S3_BUCKET: objects.bucket,
    S3_ACCESS_KEY_ID: objects.accessKeyId,
    S3_SECRET_ACCESS_KEY: objects.secretAccessKey,
    S3_FORCE_PATH_STYLE: String(objects.forcePathStyle),
  };
}

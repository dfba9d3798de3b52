import { serviceConfig, type HealthProbe, type ServicePorts } from '@penstock/feature-shell';
import { followProjection, type Logger, type Projection } from '@penstock/kernel';
import { connectNats, DeadLetters, ensureStreams, JetStreamStrategy, makesStreams, NatsCommandClient, natsCommandTransport, natsHealth, NatsConnectError, NatsEventLog, NatsSignals, NatsSnapshotStore, untilStreamsExist, type JetStreamStrategyOptions, type NatsLink } from '@penstock/infra-nats';
import { createSystemTimers, randomIds } from '@penstock/infra-telemetry';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { createServiceLogger } from './service-logger.js';
import { readSettings, type Environment } from './settings.js';
import { steadyClock } from './steady-clock.js';

/** What every service needs to reach the platform. */
export const platformConfig = serviceConfig.extend({
  /** `nats://user:password@host:port`. */
  NATS_URL: z.string().min(1),
  /** PEM file of the authority behind a TLS server. */
  NATS_CA: z.string().optional(),
  /** Copies of each stream: 1, or 3 on a cluster. */
  NATS_REPLICAS: z.coerce.number().int().min(1).max(5).default(1),
});

/** A service that starts before its broker, or before the registry has made the streams, waits this long for them. */
const BROKER_WAIT_MS = 60_000;
const BROKER_RETRY_MS = 500;

/** One service's connection to the platform and the adapters that every feature gets. */
export interface Platform {
  readonly service: string;
  readonly logger: Logger;
  readonly link: NatsLink;
  readonly deadLetters: DeadLetters;
  readonly ports: ServicePorts;
  /** A consumer of the log whose handlers are Nest `@EventPattern`s. */
  consumer(options: Omit<JetStreamStrategyOptions, 'link' | 'logger'>): MicroserviceOptions;
  close(): Promise<void>;
}

export interface PlatformOptions {
  /** False for a service that serves no commands. */
  readonly servesCommands?: boolean | undefined;
  readonly probes?: readonly HealthProbe[] | undefined;
  /** True for a service that goes on from memory while the broker is away: were it not ready then, load balancers would take all of its instances out at once. */
  readonly worksWithoutBroker?: boolean | undefined;
}

/** Connects one service: logger, NATS with its streams, and the adapters over them. */
export async function openPlatform(service: string, environment: Environment, options: PlatformOptions = {}): Promise<Platform> {
  const config = readSettings(platformConfig, environment);
  const logger = createServiceLogger(service, environment);
  const natsOptions = { url: config.NATS_URL, name: `penstock/${service}`, ca: config.NATS_CA, logger };
  const link = await connectPatiently(natsOptions, logger);
  await (makesStreams(service) ? ensureStreams(link, { replicas: config.NATS_REPLICAS }) : untilStreamsExist(link, BROKER_WAIT_MS));
  const log = new NatsEventLog(link, { consumerName: service, logger });
  const snapshots = new NatsSnapshotStore(link, { logger });
  const ports: ServicePorts = {
    clock: steadyClock,
    ids: randomIds,
    timers: createSystemTimers(logger),
    logger,
    log,
    commands: new NatsCommandClient(link),
    signals: new NatsSignals(link),
    follow: <State>(projection: Projection<State>) =>
      followProjection(log, { ...projection, name: `${service}.${projection.name}` }, {
        snapshots,
        onPoison: (event, error) => logger.error({ err: error, stream: event.stream, sequence: event.sequence, type: event.type }, 'an in-memory projection could not apply an event'),
      }),
    ...(options.servesCommands === false ? {} : { commandTransport: natsCommandTransport({ ...natsOptions, queue: service }) }),
    probes: [{ ...natsHealth(link), isVital: options.worksWithoutBroker !== true }, ...(options.probes ?? [])],
  };
  return {
    service,
    logger,
    link,
    deadLetters: new DeadLetters(link),
    ports,
    consumer: (consumerOptions) => ({ strategy: new JetStreamStrategy({ ...consumerOptions, link, logger }) }),
    close: () => link.close(),
  };
}

async function connectPatiently(options: Parameters<typeof connectNats>[0], logger: Logger): Promise<NatsLink> {
  const deadline = steadyClock.now() + BROKER_WAIT_MS;
  for (;;) {
    try {
      return await connectNats(options);
    } catch (error) {
      if (!(error instanceof NatsConnectError) || steadyClock.now() > deadline) throw error;
      logger.warn({ reason: error.message }, 'waiting for NATS');
      await pause(BROKER_RETRY_MS);
    }
  }
}

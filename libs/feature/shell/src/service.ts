import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { DynamicModule, Type } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { assertPortIsFree, hasAcceptQueues, openAcceptQueues } from './accept-queues.js';
import type { ServiceConfig } from './config.js';
import { registerHealthRoutes } from './health-routes.js';
import { NestLogger } from './nest-logger.js';
import type { ServicePorts } from './ports.js';

export interface ServiceDefinition {
  /** As in `registry`; names logs, metrics and the queue group. */
  readonly name: string;
  readonly module: Type | DynamicModule;
  readonly metrics: Registry;
  /** Adds routes or hooks to the HTTP server before it starts. */
  readonly configureHttp?: (instance: FastifyInstance, app: NestFastifyApplication) => void | Promise<void>;
  readonly fastifyOptions?: FastifyServerOptions;
  /** Sockets that listen on its port; more than one for a service that many clients may connect to at once. */
  readonly acceptQueues?: number;
  /** Runs after the service stopped taking work and before its connections close. */
  readonly onDrain?: () => Promise<void>;
  /** Ends projections, timers and pools. */
  readonly onClose?: () => Promise<void>;
}

export interface RunningService {
  readonly name: string;
  /** Base URL of its HTTP server: health, metrics and, for the gateway, the API. */
  readonly url: string;
  /** Stops taking work, waits for what is in flight (at most the drain time-out), closes. Safe to call twice. */
  close(): Promise<void>;
}

/** A registry with the process metrics, named after the service. */
export function createMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** Connections that may wait to be accepted, as far as the kernel allows: one that finds no room tries again after seconds, whatever happens meanwhile. */
const LISTEN_BACKLOG = 4_096;

/** Starts one service as a Nest application: HTTP for health and metrics, request/reply for commands, consumers for events. */
export async function startService(definition: ServiceDefinition, config: ServiceConfig, ports: ServicePorts): Promise<RunningService> {
  const state = { draining: false };
  const logger = ports.logger.child({ service: definition.name });
  const adapter = new FastifyAdapter({ forceCloseConnections: 'idle', ...definition.fastifyOptions } as FastifyServerOptions);
  const app = await NestFactory.create<NestFastifyApplication>(definition.module, adapter, { logger: new NestLogger(logger), bodyParser: false, abortOnError: false });
  const instance = adapter.getInstance() as unknown as FastifyInstance;
  registerHealthRoutes(instance, { name: definition.name, metrics: definition.metrics, probes: ports.probes ?? [], isDraining: () => state.draining });
  await definition.configureHttp?.(instance, app);
  for (const options of [ports.commandTransport, ...(ports.eventTransports ?? [])]) {
    if (options !== undefined) app.connectMicroservice(options, { inheritAppConfig: false });
  }
  await app.startAllMicroservices();
  const closeQueues = await listen(app, instance.server, config, hasAcceptQueues ? definition.acceptQueues ?? 1 : 1);
  const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  logger.info({ url }, 'service started');

  let closing: Promise<void> | undefined;
  const shutDown = async (): Promise<void> => {
    state.draining = true;
    await within(config.DRAIN_TIMEOUT_MS, definition.onDrain?.());
    await within(config.DRAIN_TIMEOUT_MS, Promise.all([app.close(), closeQueues()]));
    await definition.onClose?.();
    logger.info({}, 'service stopped');
  };
  return { name: definition.name, url, close: () => (closing ??= shutDown()) };
}

async function listen(app: NestFastifyApplication, server: FastifyInstance['server'], config: ServiceConfig, queues: number): Promise<() => Promise<void>> {
  const address = { port: config.HTTP_PORT, host: config.HTTP_HOST, backlog: LISTEN_BACKLOG };
  const isShared = config.HTTP_REUSE_PORT || queues > 1;
  if (isShared && !config.HTTP_REUSE_PORT) await assertPortIsFree(address);
  await app.listen({ ...address, ...(isShared ? { reusePort: true } : {}) });
  return queues > 1 ? openAcceptQueues(server, address, queues - 1) : () => Promise.resolve();
}

/** Waits for `work`, but never longer than `limitMs`: a drain that hangs must not keep a process alive. */
async function within(limitMs: number, work: Promise<unknown> | undefined): Promise<void> {
  if (work === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([work.then(() => undefined), limit]).finally(() => clearTimeout(timer));
}

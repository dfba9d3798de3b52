import { Module } from '@nestjs/common';
import { afterEach, describe, expect, test } from '@jest/globals';
import { silentLogger } from '@penstock/kernel';
import type { ServicePorts } from './ports.js';
import { createMetrics, startService, type RunningService } from './service.js';

class EmptyModule {}
Module({})(EmptyModule);

const unused = new Proxy({}, { get: () => { throw new Error('this port is not used here'); } }) as never;
const portsWith = (check: () => Promise<string | undefined>): ServicePorts => ({
  clock: unused,
  ids: unused,
  timers: unused,
  log: unused,
  commands: unused,
  signals: unused,
  follow: () => Promise.reject(new Error('this port is not used here')),
  logger: silentLogger,
  probes: [{ name: 'nats', check }],
});

const config = { HTTP_HOST: '127.0.0.1', HTTP_PORT: 0, HTTP_REUSE_PORT: false, DRAIN_TIMEOUT_MS: 1_000, LOG_LEVEL: 'info' } as const;
let running: RunningService | undefined;
afterEach(() => running?.close());

describe('what every service has', () => {
  test('liveness, metrics under its name, and readiness that says what is missing', async () => {
    let problem: string | undefined = undefined;
    running = await startService({ name: 'registry', module: EmptyModule, metrics: createMetrics('registry') }, config, portsWith(() => Promise.resolve(problem)));
    expect((await fetch(`${running.url}/livez`)).status).toBe(200);
    expect((await fetch(`${running.url}/readyz`)).status).toBe(200);
    problem = 'disconnected';
    const unready = await fetch(`${running.url}/readyz`);
    expect(unready.status).toBe(503);
    expect(await unready.json()).toEqual({ status: 'unavailable', service: 'registry', checks: { nats: 'disconnected' } });
    expect(await (await fetch(`${running.url}/metrics`)).text()).toContain('process_cpu_seconds_total{service="registry"}');
  });

  test('what a service works without is told, and takes nobody away from it', async () => {
    const ports = portsWith(() => Promise.resolve('disconnected'));
    running = await startService({ name: 'gateway', module: EmptyModule, metrics: createMetrics('gateway') }, config, { ...ports, probes: (ports.probes ?? []).map((probe) => ({ ...probe, isVital: false })) });
    const degraded = await fetch(`${running.url}/readyz`);
    expect([degraded.status, await degraded.json()]).toEqual([200, { status: 'degraded', service: 'gateway', checks: { nats: 'disconnected' } }]);
  });

  test('a probe that throws is a reason, not a crash', async () => {
    running = await startService({ name: 'registry', module: EmptyModule, metrics: createMetrics('registry') }, config, portsWith(() => Promise.reject(new Error('boom'))));
    expect(await (await fetch(`${running.url}/readyz`)).json()).toMatchObject({ checks: { nats: 'boom' } });
  });

  test('closing drains once, then the port is free', async () => {
    const order: string[] = [];
    const service = await startService(
      { name: 'registry', module: EmptyModule, metrics: createMetrics('registry'), onDrain: async () => void order.push('drain'), onClose: async () => void order.push('close') },
      config,
      portsWith(() => Promise.resolve(undefined)),
    );
    await Promise.all([service.close(), service.close()]);
    expect(order).toEqual(['drain', 'close']);
    await expect(fetch(`${service.url}/livez`)).rejects.toThrow();
  });

  test('several sockets on one port are one service: all their connections are answered, and all are gone with it', async () => {
    const service = await startService({ name: 'registry', module: EmptyModule, metrics: createMetrics('registry'), acceptQueues: 8 }, config, portsWith(() => Promise.resolve(undefined)));
    running = service;
    const statuses = await Promise.all(Array.from({ length: 64 }, async () => (await fetch(`${service.url}/livez`, { headers: { connection: 'close' } })).status));
    expect(statuses).toEqual(statuses.map(() => 200));
    const taken = startService({ name: 'router', module: EmptyModule, metrics: createMetrics('router'), acceptQueues: 8 }, { ...config, HTTP_PORT: Number(new URL(service.url).port) }, portsWith(() => Promise.resolve(undefined)));
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await service.close();
    await expect(fetch(`${service.url}/livez`)).rejects.toThrow();
  });
});

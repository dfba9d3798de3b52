import { setTimeout as delay } from 'node:timers/promises';
import { EngineStartError, type EngineStartSpec } from '@penstock/domain-serving';
import { isHealthy } from '../http/engine-http.js';
import { EngineChild, type SpawnEngineOptions } from './engine-child.js';
import { freePort } from './free-port.js';

/** Another process may take the port between the choice and the engine's bind. */
const PORT_ATTEMPTS_MAX = 3;
const HEALTH_POLL_MS = 50;
const HEALTH_TIMEOUT_MS = 2_000;

export interface StartChildOptions extends Omit<SpawnEngineOptions, 'url' | 'args' | 'replicaId' | 'logFile' | 'device'> {
  readonly spec: EngineStartSpec;
  readonly argsFor: (port: number) => readonly string[];
  readonly startTimeoutMs: number;
}

/** Starts an engine on a free loopback port and waits until it is healthy. Throws {@link EngineStartError}. */
export async function startChild(options: StartChildOptions): Promise<EngineChild> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const { kind, command, servedModel, spec } = options;
    const { replicaId, logFile, device } = spec;
    const child = await EngineChild.spawn({ kind, command, servedModel, replicaId, logFile, device, args: options.argsFor(port), url: `http://127.0.0.1:${port}` });
    await spec.onSpawned?.(child.record);
    const failure = await untilReady(child, options);
    if (failure === undefined) return child;
    await child.kill();
    const portTaken = failure.code === 'engine_exited' && /address already in use|EADDRINUSE|couldn't bind/i.test(failure.message);
    if (!portTaken || attempt >= PORT_ATTEMPTS_MAX) throw failure;
  }
}

async function untilReady(child: EngineChild, { startTimeoutMs, spec }: StartChildOptions): Promise<EngineStartError | undefined> {
  const deadlineMs = performance.now() + startTimeoutMs;
  while (performance.now() < deadlineMs) {
    if (spec.signal?.aborted === true) return new EngineStartError('engine_exited', 'the start was given up');
    if (child.hasExited) return new EngineStartError('engine_exited', (await child.exited).reason);
    if (await isHealthy(child.record.kind, child.url, HEALTH_TIMEOUT_MS)) return undefined;
    await delay(HEALTH_POLL_MS);
  }
  return new EngineStartError('start_timeout', `the engine did not become ready within ${Math.round(startTimeoutMs / 1_000)} s; see ${child.record.logFile}`);
}

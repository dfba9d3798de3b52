import { createHash } from 'node:crypto';
import { createBatch, getBatch, getFile, registerFile, type BatchObject } from '@penstock/contract-commands';
import type { ObjectStore } from '@penstock/domain-batching';
import type { RunningService } from '@penstock/feature-shell';
import { followProjection, silentLogger, type EventLog } from '@penstock/kernel';
import type { z } from 'zod';
import { batchConfig } from '../batch-config.js';
import type { BatchPorts } from '../batch-ports.js';
import { startBatch } from '../start-batch.js';
import { FakeGateway, TEST_TOKEN } from './fake-gateway.js';

export const ORGANISATION = 'org_1';
const WAIT_MS_MAX = 20;
const END_STATUSES = ['completed', 'failed', 'expired', 'cancelled'];

/** A worker that can be killed: from then on nothing it does reaches the log or the store. */
export interface Worker {
  readonly service: RunningService;
  kill(): Promise<void>;
}

/** What a test gives: adapters, real or in memory, and how it waits. */
export interface WorldParts extends Pick<BatchPorts, 'log' | 'objects' | 'commands' | 'signals' | 'timers' | 'ids' | 'clock'> {
  /** A server for the commands of one worker. */
  readonly commandTransport: () => NonNullable<BatchPorts['commandTransport']>;
  readonly eventually: <Value>(read: () => Promise<Value>, isDone: (value: Value) => boolean) => Promise<Value>;
}

/** Everything around the batch service: log, store, gateway, and any number of workers on them. */
export class BatchWorld {
  readonly gateway = new FakeGateway();
  /** Added to the time that every worker sees. */
  clockOffsetMs = 0;
  private readonly services: RunningService[] = [];

  constructor(private readonly parts: WorldParts) {}

  get objects(): ObjectStore {
    return this.parts.objects;
  }

  get commands(): BatchPorts['commands'] {
    return this.parts.commands;
  }

  async close(): Promise<void> {
    await Promise.all(this.services.map((service) => service.close()));
    await this.gateway.stop();
  }

  async startWorker(settings: Record<string, string> = {}, ports: Partial<BatchPorts> = {}): Promise<Worker> {
    const life = { isDead: false };
    const config = batchConfig.parse({
      GATEWAY_URL: this.gateway.url, INTERNAL_TOKEN: TEST_TOKEN, BATCH_RECONCILE_INTERVAL_MS: '20', DRAIN_TIMEOUT_MS: '3000', ...settings,
    });
    const { clock, ids, timers, commands, signals } = this.parts;
    const log = mortal<EventLog>(this.parts.log, life);
    const service = await startBatch(config, {
      clock: { now: () => clock.now() + this.clockOffsetMs },
      // Waits are cut short: what they wait for is told by the clock, which tests move.
      timers: { after: (delayMs, call) => timers.after(Math.min(delayMs, WAIT_MS_MAX), call), every: (intervalMs, call) => timers.every(intervalMs, call) },
      ids, logger: silentLogger,
      log, objects: mortal<ObjectStore>(this.objects, life), commands, signals,
      follow: (projection) => followProjection(log, projection),
      commandTransport: this.parts.commandTransport(), projections: [], ...ports,
    });
    this.services.push(service);
    const kill = async (): Promise<void> => {
      life.isDead = true;
      await service.close();
    };
    return { service, kill };
  }

  async uploadText(text: string, fileId = this.parts.ids.next('file')): Promise<string> {
    const bytes = new TextEncoder().encode(text);
    const objectKey = `files/${ORGANISATION}/${fileId}`;
    await this.objects.put(objectKey, bytes);
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    const reply = await this.commands.send(registerFile, { fileId, organisationId: ORGANISATION, projectId: 'proj_1', filename: 'in.jsonl', purpose: 'batch', bytes: bytes.length, digest, objectKey, expiresAt: null });
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    return fileId;
  }

  async createBatch(inputFileId: string, more: Partial<z.input<typeof createBatch.request>> = {}): Promise<BatchObject> {
    const reply = await this.commands.send(createBatch, {
      organisationId: ORGANISATION, projectId: 'proj_1', keyId: 'key_1', inputFileId, endpoint: '/v1/chat/completions', completionWindow: '24h', metadata: { who: 'test' }, ...more,
    });
    if (reply.kind === 'refused') throw new Error(`${reply.refusal.code}: ${reply.refusal.message}`);
    return reply.value;
  }

  async createBatchOf(lines: number): Promise<BatchObject> {
    return this.createBatch(await this.uploadText(linesText(lines)));
  }

  async batch(batchId: string): Promise<BatchObject> {
    const reply = await this.commands.send(getBatch, { organisationId: ORGANISATION, batchId });
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    return reply.value;
  }

  /** The job at its end. `passMs` is how much time passes with every look at it. */
  ended(batchId: string, passMs = 0): Promise<BatchObject> {
    const look = (): Promise<BatchObject> => {
      this.clockOffsetMs += passMs;
      return this.batch(batchId);
    };
    return this.parts.eventually(look, (batch) => END_STATUSES.includes(batch.status));
  }

  /** Parsed rows of a result file; none for a file that is not there. */
  async rows(fileId: string | null): Promise<OutputRow[]> {
    if (fileId === null) return [];
    const reply = await this.commands.send(getFile, { organisationId: ORGANISATION, fileId });
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    const reading = await this.objects.get(reply.value.objectKey);
    const parts: Uint8Array[] = [];
    for await (const part of reading?.body ?? []) parts.push(part);
    return Buffer.concat(parts).toString('utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as OutputRow);
  }
}

export interface OutputRow {
  readonly id: string;
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly request_id: string; readonly body: { readonly echo?: string } } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Lines `r1` to `rN`. */
export function linesText(count: number): string {
  return Array.from({ length: count }, (_, index) => lineText(`r${index + 1}`)).join('\n');
}

export function lineText(customId: string, body: Record<string, unknown> = {}): string {
  return JSON.stringify({ custom_id: customId, method: 'POST', url: '/v1/chat/completions', body: { model: 'm', custom: customId, ...body } });
}

function mortal<Port extends object>(port: Port, life: { readonly isDead: boolean }): Port {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (life.isDead) throw new Error('this worker is dead');
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
}

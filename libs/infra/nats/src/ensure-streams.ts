import { contexts, streamOf, type StreamName } from '@penstock/contract-events';
import type { StreamConfig } from '@nats-io/jetstream';
import { BrokerError, backoffMs, brokerCodes, brokerRequest, isTransient, NANOS_PER_MS, pause } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { ANSWERS_BUCKET, ANSWERS_STREAM } from './answers-bucket.js';
import { openSharedBucket } from './nats-shared-records.js';
import { openSnapshotBucket, SNAPSHOT_STREAM } from './snapshot-bucket.js';

export type PlatformStream = StreamName | 'DLQ' | 'TELEMETRY';

export interface StreamLimits {
  /** Bytes on disk per stream; what is left out gets its default. */
  readonly maxBytes?: Partial<Record<PlatformStream, number>> | undefined;
  /** 1, or 3 on a cluster. */
  readonly replicas?: number | undefined;
}

const MIB = 1_024 * 1_024;
const CONTEXT_BYTES = 256 * MIB;
const USAGE_BYTES = 1_024 * MIB;
const DEAD_LETTER_BYTES = 64 * MIB;
const TELEMETRY_BYTES = 128 * MIB;
const TELEMETRY_AGE_MS = 24 * 3_600_000;
const DUPLICATE_WINDOW_MS = 120_000;
/** A server that has just started answers its API after its streams are recovered. */
const READY_WAIT_MS = 30_000;

/**
 * Makes every stream of the platform, or raises the limits of those that are there. Limits never go down and no setting
 * that protects data is loosened, so it may be called at each start.
 */
export async function ensureStreams(link: NatsLink, limits: StreamLimits = {}): Promise<void> {
  for (const config of streamConfigs(limits)) await whenReady(() => ensureStream(link, config));
  await whenReady(async () => void (await openSnapshotBucket(link, limits.replicas)));
  await whenReady(async () => void (await openSharedBucket(link, { ...ANSWERS_BUCKET, replicas: limits.replicas })));
}

/**
 * Waits until the service that makes the streams has made them. Throws with what to do when one is missing after `limitMs`.
 */
export async function untilStreamsExist(link: NatsLink, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (const name of [...streamConfigs({}).map((config) => config.name ?? ''), SNAPSHOT_STREAM, ANSWERS_STREAM]) {
    for (let attempt = 0; ; attempt += 1) {
      const problem = await brokerRequest(link.connection, `$JS.API.STREAM.INFO.${name}`, undefined).then(() => undefined, (error: unknown) => error);
      if (problem === undefined) break;
      const isMissing = problem instanceof BrokerError && problem.errorCode === brokerCodes.streamNotFound;
      if ((!isMissing && !isTransient(problem)) || performance.now() > deadline) {
        throw new Error(`Stream ${name} is not there after ${Math.round(limitMs / 1_000)} s: start the registry, which makes the streams, then start this service again.`, { cause: problem });
      }
      await pause(backoffMs(attempt));
    }
  }
}

function streamConfigs(limits: StreamLimits): Partial<StreamConfig>[] {
  const common = {
    storage: 'file' as const,
    retention: 'limits' as const,
    num_replicas: limits.replicas ?? 1,
    duplicate_window: DUPLICATE_WINDOW_MS * NANOS_PER_MS,
    allow_direct: true,
  };
  const events = contexts.map((context) => {
    const name = streamOf(context);
    const max_bytes = limits.maxBytes?.[name] ?? (context === 'usage' ? USAGE_BYTES : CONTEXT_BYTES);
    // `discard: new` refuses an append at the limit; `old` would drop history without a word.
    return { ...common, name, subjects: [`ev.${context}.>`], max_bytes, discard: 'new' as const, allow_atomic: true };
  });
  const deadLetters = { ...common, name: 'DLQ', subjects: ['dlq.>'], max_bytes: limits.maxBytes?.DLQ ?? DEAD_LETTER_BYTES, discard: 'old' as const };
  const telemetry = {
    ...common,
    name: 'TELEMETRY',
    subjects: ['telemetry.>'],
    max_bytes: limits.maxBytes?.TELEMETRY ?? TELEMETRY_BYTES,
    max_age: TELEMETRY_AGE_MS * NANOS_PER_MS,
    discard: 'old' as const,
  };
  return [...events, deadLetters, telemetry];
}

async function ensureStream(link: NatsLink, wanted: Partial<StreamConfig>): Promise<void> {
  const { connection } = link;
  const found = await brokerRequest<{ config: StreamConfig }>(connection, `$JS.API.STREAM.INFO.${wanted.name}`, undefined).catch((error: unknown) => {
    if (error instanceof BrokerError && error.errorCode === brokerCodes.streamNotFound) return undefined;
    throw error;
  });
  if (found === undefined) {
    await brokerRequest(connection, `$JS.API.STREAM.CREATE.${wanted.name}`, wanted).catch((error: unknown) => explainCreate(error, wanted));
    return;
  }
  const current = found.config;
  const raised = {
    ...current,
    ...wanted,
    max_bytes: higher(current.max_bytes, wanted.max_bytes),
    num_replicas: Math.max(current.num_replicas, wanted.num_replicas ?? 1),
    max_age: wanted.max_age === undefined ? current.max_age : Math.max(current.max_age, wanted.max_age),
    duplicate_window: Math.max(current.duplicate_window, wanted.duplicate_window ?? 0),
  };
  const differs = Object.entries(raised).some(([key, value]) => JSON.stringify(value) !== JSON.stringify(current[key as keyof StreamConfig]));
  if (differs) await brokerRequest(connection, `$JS.API.STREAM.UPDATE.${wanted.name}`, raised);
}

function explainCreate(error: unknown, wanted: Partial<StreamConfig>): void {
  if (!(error instanceof BrokerError)) throw error;
  // Another service made it in the same moment, with other limits; the higher ones come at the next start.
  if (error.errorCode === brokerCodes.streamNameInUse) return;
  if (error.errorCode !== brokerCodes.storageExceeded) throw error;
  throw new Error(`NATS has no room for stream ${wanted.name} (${wanted.max_bytes} bytes): free some disk, raise the server's JetStream storage limit, or give the stream a lower one.`, { cause: error });
}

/** -1 is "no limit", the highest of all. */
function higher(current: number, wanted: number | undefined): number {
  return current < 0 || wanted === undefined ? current : Math.max(current, wanted);
}

async function whenReady(call: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + READY_WAIT_MS;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if ((error instanceof Error && error.cause instanceof BrokerError) || !isTransient(error) || performance.now() > deadline) throw error;
      await pause(backoffMs(attempt));
    }
  }
}

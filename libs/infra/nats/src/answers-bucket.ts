import type { SharedRecordsOptions } from './nats-shared-records.js';

/** Answers that clients asked to be stored: kept for as long as an Idempotency-Key counts, on this much disk of the broker. */
export const ANSWERS_BUCKET: SharedRecordsOptions = { bucket: 'ANSWERS', ttlMs: 24 * 3_600_000, bytesMax: 256 * 1_024 * 1_024 };

export const ANSWERS_STREAM = 'KV_ANSWERS';

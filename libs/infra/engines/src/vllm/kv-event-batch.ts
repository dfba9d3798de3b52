import type { KvEvent } from '@penstock/domain-routing';
import { decode } from '@msgpack/msgpack';
import { z } from 'zod';

const ELEMENTS_MAX = 1_000_000;
const EVENTS_MAX = 100_000;
const SEQUENCE_BYTES = 8;
const limits = { maxStrLength: 65_536, maxBinLength: 65_536, maxArrayLength: ELEMENTS_MAX, maxMapLength: 1_024, maxExtLength: 1_024 };

/** `[seconds, events, data-parallel rank]`; later versions may add more. */
const batch = z.tuple([z.number(), z.array(z.unknown()).max(EVENTS_MAX)], z.unknown());
const hashes = z.array(z.unknown());
const medium = z.string().nullish();
/** vLLM 0.32 sends maps with the field `type`; versions before it sent arrays with the type first and these fields by their place. */
const stored = z.object({ type: z.literal('BlockStored'), block_hashes: hashes, medium });
const removed = z.object({ type: z.literal('BlockRemoved'), block_hashes: hashes, medium });
const event = z.discriminatedUnion('type', [stored, removed, z.object({ type: z.literal('AllBlocksCleared') })]);

/** Blocks in slower memory are none of the engine's prefix cache proper: a replica that holds them there still has them to load. */
const SLOWER_MEDIA: ReadonlySet<string> = new Set(['CPU', 'STORAGE']);

export interface KvEventBatch {
  /** Counts the batches of one engine from 0. */
  readonly sequence: number;
  readonly events: readonly KvEvent[];
}

/**
 * Reads one message of vLLM's publisher: topic, sequence (8 bytes, big-endian) and MessagePack. Types of events that are not known are
 * passed over. Throws where the message is none of those.
 */
export function readKvEventBatch(parts: readonly Buffer[]): KvEventBatch {
  const [, sequence, payload] = parts;
  if (parts.length !== 3 || sequence?.length !== SEQUENCE_BYTES || payload === undefined) throw new Error('a message has not the parts topic, sequence and payload');
  const [, events] = batch.parse(decode(payload, limits));
  return { sequence: Number(sequence.readBigInt64BE()), events: events.flatMap((raw) => toKvEvent(raw)) };
}

function toKvEvent(raw: unknown): readonly KvEvent[] {
  const fields = Array.isArray(raw) ? byName(raw) : raw;
  const type = z.looseObject({ type: z.string() }).parse(fields).type;
  if (!event.options.some((option) => option.shape.type.value === type)) return [];
  const known = event.parse(fields);
  if (known.type === 'AllBlocksCleared') return [{ kind: 'all-blocks-cleared' }];
  if (SLOWER_MEDIA.has(known.medium ?? '')) return [];
  return [{ kind: known.type === 'BlockStored' ? 'block-stored' : 'block-removed', blocks: known.block_hashes.length }];
}

function byName([type, ...fields]: readonly unknown[]): Record<string, unknown> {
  return { type, block_hashes: fields[0], medium: type === 'BlockStored' ? fields[5] : fields[1] };
}

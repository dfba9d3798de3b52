import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { encode } from '@msgpack/msgpack';
import type { KvEvent } from '@penstock/domain-routing';
import { eventually } from '@penstock/testing-kit';
import { KvEventsByEngine } from '../kv-events-by-engine.js';
import { GREETING, READY, ZmtpPublisher } from './zmtp-publisher-suite.js';

const CACHE_CONFIG = 'vllm:cache_config_info{block_size="32",engine="0",num_gpu_blocks="256",num_gpu_blocks_override="256"} 1.0';
/** What our side sends in all: greeting of version 3.0, `READY` as SUB, the subscription to everything. */
const OUR_BYTES = `ff00000000000000017f0300${'4e554c4c'.padEnd(40, '0')}${'00'.repeat(32)}04190552454144590b536f636b65742d5479706500000003535542000101`;

const source = new KvEventsByEngine();
let metrics: Server;
let cacheConfig: string;
let publisher: ZmtpPublisher;
let seen: KvEvent[];
let ends: number;
const closers: (() => void)[] = [];

beforeEach(async () => {
  cacheConfig = CACHE_CONFIG;
  [seen, ends] = [[], 0];
  metrics = createServer((_request, response) => response.end(`# TYPE vllm:cache_config_info gauge\n${cacheConfig}\n`)).listen(0, '127.0.0.1');
  await once(metrics, 'listening');
  publisher = await ZmtpPublisher.start();
});

afterEach(async () => {
  for (const close of closers.splice(0)) close();
  await publisher.close();
  metrics.closeAllConnections();
  metrics.close();
});

function watch(port = publisher.port): { close(): void } {
  const url = `http://127.0.0.1:${(metrics.address() as AddressInfo).port}`;
  const watching = source.watch({ engine: 'vllm', url, kvEventsPort: port }, { onEvents: (events) => void seen.push(...events), onEnd: () => void (ends += 1) });
  closers.push(() => watching.close());
  return watching;
}

const subscribed = () => eventually(() => publisher.heard.toString('hex'), (heard) => heard === OUR_BYTES);
const sequence = (number: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(number);
  return bytes;
};
const publish = (number: bigint, events: readonly unknown[], ...more: readonly unknown[]): void => publisher.publish(Buffer.from('kv@tiny'), sequence(number), Buffer.from(encode([1_764_000_000.5, events, ...more], { useBigInt64: true })));
const hash = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
/** As vLLM 0.32 says it. */
const stored = (...hashes: readonly unknown[]) => ({ type: 'BlockStored', block_hashes: hashes, parent_block_hash: null, token_ids: [1, 2, 3], block_size: 32, lora_id: null, medium: 'GPU', lora_name: null });

describe('the cache events of vLLM', () => {
  test('begin with what the cache can hold, and count what enters and leaves it', async () => {
    watch();
    await subscribed();
    publish(7n, [stored(hash(1), hash(2)), { type: 'BlockRemoved', block_hashes: [hash(3)], medium: 'GPU' }, { type: 'BlockMoved', to: 'elsewhere' }], 0);
    publish(8n, [{ type: 'BlockRemoved', block_hashes: [hash(4)], medium: 'CPU' }, { type: 'AllBlocksCleared' }]);
    await eventually(() => seen, (events) => events.length === 4);
    expect(seen).toEqual([{ kind: 'cache-size', blocks: 256, blockTokens: 32, blocksMax: 256 }, { kind: 'block-stored', blocks: 2 }, { kind: 'block-removed', blocks: 1 }, { kind: 'all-blocks-cleared' }]);
    expect(ends).toBe(0);
  });

  test('are read as versions before 0.32 wrote them, with all ranks of the engine counted', async () => {
    cacheConfig = `${CACHE_CONFIG}\n${CACHE_CONFIG.replace('engine="0"', 'engine="1"')}`;
    watch();
    await subscribed();
    publish(3n, [['BlockStored', [2n ** 63n, -5, 3], null, [1, 2], 16, null], ['BlockStored', [1], null, [1], 16, null, 'CPU'], ['BlockRemoved', [9], 'GPU'], ['AllBlocksCleared']]);
    await eventually(() => seen, (events) => events.length === 4);
    expect(seen).toEqual([{ kind: 'cache-size', blocks: 512, blockTokens: 32, blocksMax: 512 }, { kind: 'block-stored', blocks: 3 }, { kind: 'block-removed', blocks: 1 }, { kind: 'all-blocks-cleared' }]);
  });

  test('count from nothing where the engine\'s first message is heard', async () => {
    watch();
    await subscribed();
    publish(0n, [stored(1)]);
    await eventually(() => seen, (events) => events.length === 3);
    expect(seen.slice(1)).toEqual([{ kind: 'cache-size', blocks: 0, blockTokens: 32, blocksMax: 256 }, { kind: 'block-stored', blocks: 1 }]);
  });

  test('say nothing of a size that the engine does not tell', async () => {
    cacheConfig = 'vllm:cache_config_info{block_size="None"} 1.0';
    watch();
    await subscribed();
    publish(0n, [{ type: 'AllBlocksCleared' }]);
    await eventually(() => seen, (events) => events.length > 0);
    expect(seen).toEqual([{ kind: 'all-blocks-cleared' }]);
  });

  test('end at a gap, and at what is no such message; the end is told once', async () => {
    const broken: readonly (() => void)[] = [
      () => publish(9n, []),
      () => publish(6n, ['AllBlocksCleared']),
      () => publish(6n, [{ type: 'BlockStored', block_hashes: 'none' }]),
      () => publisher.publish(Buffer.from('kv'), sequence(6n), Buffer.from([0xc1])),
      () => publisher.publish(Buffer.from('kv'), sequence(6n)),
      () => publisher.publish(Buffer.from('kv'), Buffer.from([6]), Buffer.from(encode([0, []]))),
      () => publisher.write(Buffer.from('garbage')),
      // A string that says it has four gigabytes, and a frame that says it has more.
      () => publisher.publish(Buffer.from('kv'), sequence(6n), Buffer.from([0x92, 0x00, 0xdb, 0xff, 0xff, 0xff, 0xff])),
      () => publisher.write(Buffer.from('02ffffffffffffffff', 'hex')),
      () => publisher.sockets[0]?.destroy(),
    ];
    for (const breakIt of broken) {
      [seen, ends] = [[], 0];
      watch();
      await subscribed();
      publish(5n, []);
      breakIt();
      await eventually(() => ends, (count) => count === 1);
      expect(seen.filter(({ kind }) => kind !== 'cache-size')).toEqual([]);
      publisher.sockets.length = 0;
      publisher.heard = Buffer.alloc(0);
    }
  });

  test('end at once where nobody publishes, or somebody else listens', async () => {
    const others = [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), Buffer.concat([GREETING, Buffer.from([0, 1, 65])]), Buffer.concat([GREETING, Buffer.from(READY.toString('latin1').replace('READY', 'ERROR'), 'latin1')])];
    for (const [index, hello] of others.entries()) {
      const other = await ZmtpPublisher.start(hello);
      watch(other.port);
      await eventually(() => ends, (count) => count === index + 1);
      await other.close();
    }
    watch(9);
    await eventually(() => ends, (count) => count === others.length + 1);
    expect(seen).toEqual([]);
  });

  test('are no more heard after the watch was closed', async () => {
    const watching = watch();
    await subscribed();
    watching.close();
    watch().close();
    await eventually(() => publisher.sockets, ([socket]) => socket?.readyState !== 'open');
    expect(ends).toBe(0);
    expect(source.offers({ engine: 'vllm', kvEventsPort: null })).toBe(false);
    expect(source.offers({ engine: 'llama.cpp', kvEventsPort: 5_557 })).toBe(false);
    expect(source.offers({ engine: 'engine-sim', kvEventsPort: null })).toBe(true);
  });
});

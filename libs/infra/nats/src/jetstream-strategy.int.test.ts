import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Controller, type INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, Payload } from '@nestjs/microservices';
import type { RecordedEvent } from '@penstock/kernel';
import { eventually, startTestNats, type TestNats } from '@penstock/testing-kit';
import { throwError } from 'rxjs';
import { brokerRequest } from './broker-api.js';
import { connectNats, type NatsLink } from './connect-nats.js';
import { DeadLetters } from './dead-letters.js';
import { ensureStreams } from './ensure-streams.js';
import { JetStreamContext, JetStreamStrategy } from './jetstream-strategy.js';
import { NatsEventLog } from './nats-event-log.js';

/** What the handler does with an event, by its reason; set by each test. */
const behaviour = new Map<string, (deliveries: number) => object | undefined>();
const handled: { reason: string; deliveries: number }[] = [];

@Controller()
class RevocationConsumer {
  @EventPattern('api-key.revoked.v1')
  async revoked(@Payload() event: RecordedEvent<'api-key.revoked.v1', { reason: string }>, @Ctx() ctx: unknown): Promise<object | undefined> {
    const context = ctx as JetStreamContext;
    const { reason } = event.data;
    const result = await behaviour.get(reason)?.(context.deliveries());
    handled.push({ reason, deliveries: context.deliveries() });
    return result;
  }
}

class ConsumerModule {}

describe('JetStreamStrategy', () => {
  let server: TestNats;
  let link: NatsLink;
  let log: NatsEventLog;
  let app: INestMicroservice;
  let durable: string;
  let count = 0;

  const start = async (): Promise<INestMicroservice> => {
    const strategy = new JetStreamStrategy({ link, stream: 'EV_ACCESS', durable, maxInFlight: 8, maxDeliveries: 3, retryDelayMs: 10, ackWaitMs: 60_000 });
    const created = await NestFactory.createMicroservice({ module: ConsumerModule, controllers: [RevocationConsumer] }, { strategy, logger: false });
    await created.listen();
    return created;
  };
  const append = async (reason: string): Promise<number> => {
    count += 1;
    const result = await log.append({
      ref: { context: 'access', aggregate: 'api-key', id: `key_${count}` }, events: [{ type: 'api-key.revoked.v1', data: { keyId: `key_${count}`, reason } }],
      expected: 0, commandId: `cmd_${count}`, source: 'penstock/test', nowMs: 0, correlationId: 'c', causationId: 'c',
    });
    return result.kind === 'appended' ? result.lastSequence : 0;
  };
  const consumer = (): Promise<{ num_ack_pending: number; num_pending: number }> => brokerRequest(link.connection, `$JS.API.CONSUMER.INFO.EV_ACCESS.${durable}`, undefined);
  const settled = (): Promise<unknown> => eventually(consumer, (info) => info.num_ack_pending === 0 && info.num_pending === 0);

  beforeAll(async () => {
    server = await startTestNats();
    link = await connectNats({ url: server.url, name: 'penstock/test' });
    await ensureStreams(link);
    log = new NatsEventLog(link, { consumerName: 'test' });
  });
  afterAll(async () => {
    await link.close();
    await server.close();
  });
  beforeEach(async () => {
    behaviour.clear();
    handled.length = 0;
    durable = `durable_${count}`;
    app = await start();
    await settled();
    handled.length = 0;
  });
  afterEach(() => app.close());

  test('what a handler took is acknowledged, and not delivered again after a restart', async () => {
    for (let index = 0; index < 50; index += 1) await append(`ok_${index}`);
    await settled();
    expect(handled.map((entry) => entry.reason).sort()).toEqual(Array.from({ length: 50 }, (_, index) => `ok_${index}`).sort());
    await app.close();
    app = await start();
    await append('after_restart');
    await eventually(() => handled.length, (length) => length === 51);
    expect(handled.at(-1)).toEqual({ reason: 'after_restart', deliveries: 1 });
  });

  test('what fails is delivered again, then becomes a dead letter that can be re-driven', async () => {
    behaviour.set('flaky', (deliveries) => {
      if (deliveries < 3) throw new Error('not yet');
      return undefined;
    });
    behaviour.set('hopeless', () => throwError(() => new Error('never')));
    await append('flaky');
    const hopeless = await append('hopeless');
    await settled();
    expect(handled.filter((entry) => entry.reason === 'flaky')).toEqual([{ reason: 'flaky', deliveries: 3 }]);
    const letters = new DeadLetters(link);
    const [letter] = await letters.list({ consumer: durable });
    expect(letter).toMatchObject({ stream: 'EV_ACCESS', sequence: hopeless, consumer: durable, mode: 'durable', deliveries: 3 });
    expect(letter?.reason).toContain('api-key.revoked.v1 failed 3 times');

    const id = letter?.id ?? 0;
    expect(await letters.redrive(id)).toMatchObject({ kind: 'failed' });
    expect(await letters.list({ consumer: durable })).toHaveLength(1);
    behaviour.delete('hopeless');
    handled.length = 0;
    expect(await letters.redrive(id)).toEqual({ kind: 'done' });
    expect(handled).toEqual([{ reason: 'hopeless', deliveries: 1 }]);
    expect(await letters.list({ consumer: durable })).toEqual([]);
    expect(await letters.redrive(id)).toEqual({ kind: 'not-found' });
  });

  test('what cannot be read becomes a dead letter at once, for the durable and for a tail', async () => {
    const seen: number[] = [];
    const { lastSequence } = await log.bounds('EV_ACCESS');
    let through = 0;
    const tail = await log.tail('EV_ACCESS', lastSequence + 1, (events, position) => {
      seen.push(...events.map((event) => event.sequence));
      through = position;
    });
    await link.connection.request('ev.access.api-key.key_bad', '{"half":');
    await link.connection.request('ev.access.api-key.key_bad', JSON.stringify({ id: 'x', type: 'api-key.revoked.v9', source: 's', time: 't', correlationId: 'c', causationId: 'c', data: {} }));
    await append('after_poison');
    await settled();
    await eventually(() => through, (position) => position === lastSequence + 3);
    expect(seen).toEqual([lastSequence + 3]);
    await tail.close();
    const letters = new DeadLetters(link);
    const own = await letters.list({ consumer: durable });
    expect(own.map((letter) => letter.reason)).toEqual(['the body is not JSON', 'no contract for type api-key.revoked.v9']);
    const ordered = await letters.list({ consumer: 'test' });
    expect(ordered.map((letter) => letter.sequence)).toEqual([lastSequence + 1, lastSequence + 2]);
    expect(await letters.redrive(ordered[0]?.id ?? 0)).toEqual({ kind: 'failed', reason: 'the body is not JSON' });
    expect(await letters.discard(own[0]?.id ?? 0)).toBe(true);
    expect(await letters.discard(own[0]?.id ?? 0)).toBe(false);
    expect(await letters.list({ consumer: durable })).toHaveLength(1);
  });

  test('closing waits for the handler, and its event is acknowledged', async () => {
    let finish: () => void = () => undefined;
    let entered = false;
    behaviour.set('slow', () => {
      entered = true;
      return new Promise<void>((resolve) => (finish = resolve));
    });
    await append('slow');
    await eventually(() => entered, Boolean);
    let isClosed = false;
    const closing = app.close().then(() => (isClosed = true));
    await append('not_taken');
    expect(isClosed).toBe(false);
    finish();
    await closing;
    expect(handled.map((entry) => entry.reason)).toEqual(['slow']);
    // The one that came too late went back to the broker at once, long before its acknowledgement was due.
    app = await start();
    await eventually(() => handled.map((entry) => entry.reason), (reasons) => reasons.includes('not_taken'));
    expect(handled.map((entry) => entry.reason)).toEqual(['slow', 'not_taken']);
  });

  test('it goes on after the server was killed', async () => {
    await append('before_kill');
    await settled();
    await server.restart();
    await append('after_kill');
    await eventually(() => handled.map((entry) => entry.reason), (reasons) => reasons.includes('after_kill'));
    expect(handled.filter((entry) => entry.reason === 'after_kill')).toHaveLength(1);
  });
});

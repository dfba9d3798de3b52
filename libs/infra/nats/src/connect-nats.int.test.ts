import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EventLogFullError, EventLogUnavailableError } from '@penstock/kernel';
import { eventually, startTestNats, type TestNats } from '@penstock/testing-kit';
import { brokerRequest } from './broker-api.js';
import { connectionOptions, connectNats, NatsConnectError, NatsServerUnsuitableError, type NatsLink } from './connect-nats.js';
import { ensureStreams } from './ensure-streams.js';
import { NatsEventLog } from './nats-event-log.js';
import { natsHealth } from './nats-health.js';
import { NatsSignals } from './nats-signals.js';
import { NatsSnapshotStore } from './nats-snapshot-store.js';

/** Greets like a server of this kind and answers pings, which is all a client needs to connect. */
async function pretend(info: object): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.write(`INFO ${JSON.stringify({ server_id: 'X', proto: 1, max_payload: 1_048_576, headers: true, ...info })}\r\n`);
    socket.on('data', (bytes) => bytes.toString('latin1').includes('PING') && socket.write('PONG\r\n'));
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

describe('connecting', () => {
  test.each(['2.9.10', '2.10.27', '2.13.9', '1.99.0'])('refuses server %s and says what to do', async (version) => {
    const { url, server } = await pretend({ version, jetstream: true });
    await expect(connectNats({ url, name: 'test' })).rejects.toThrow(new RegExp(`is version ${version.replaceAll('.', '\\.')}; Penstock needs 2\\.14 or newer\\. Upgrade it`));
    server.close();
  });

  test('refuses a server without JetStream', async () => {
    const { url, server } = await pretend({ version: '2.15.1' });
    await expect(connectNats({ url, name: 'test' })).rejects.toThrow(NatsServerUnsuitableError);
    server.close();
  });

  test('takes 2.14 and 3.0', async () => {
    for (const version of ['2.14.0', '2.15.0-RC.1', '3.0.0']) {
      const { url, server } = await pretend({ version, jetstream: true });
      const link = await connectNats({ url, name: 'test' });
      expect(link.state()).toBe('connected');
      await link.connection.close();
      server.close();
    }
  });

  test('reads credentials, several servers and TLS from the URL', () => {
    expect(connectionOptions({ url: 'nats://user:p%40ss@one:4222,nats://two', name: 'x' })).toMatchObject({ servers: ['one:4222', 'two:4222'], user: 'user', pass: 'p@ss', maxReconnectAttempts: -1 });
    expect(connectionOptions({ url: 'nats://token@one', name: 'x' })).toMatchObject({ token: 'token' });
    expect(connectionOptions({ url: 'tls://one', name: 'x', ca: '-----BEGIN CERTIFICATE-----' })).toMatchObject({ tls: { ca: '-----BEGIN CERTIFICATE-----' } });
  });
});

describe('a real server with credentials', () => {
  let server: TestNats;
  let link: NatsLink;
  beforeAll(async () => {
    server = await startTestNats({ user: 'penstock', password: 'secret-word' });
    link = await connectNats({ url: server.url, name: 'test' });
    await ensureStreams(link, { maxBytes: { EV_BILLING: 10_000, EV_BATCH: 3_000 } });
  });
  afterAll(async () => {
    await link.close();
    await server.close();
  });

  test('a wrong password is an error that does not show it', async () => {
    const failure = await connectNats({ url: server.url.replace('secret-word', 'wrong-word'), name: 'test' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NatsConnectError);
    expect(String(failure)).not.toContain('wrong-word');
  });

  test('streams are made once, raised, and never lowered', async () => {
    const config = async (): Promise<object> => (await brokerRequest<{ config: object }>(link.connection, '$JS.API.STREAM.INFO.EV_BILLING', undefined)).config;
    await ensureStreams(link, { maxBytes: { EV_BILLING: 20_000, EV_BATCH: 3_000 } });
    expect(await config()).toMatchObject({ subjects: ['ev.billing.>'], max_bytes: 20_000, discard: 'new', retention: 'limits', storage: 'file', allow_atomic: true, allow_direct: true });
    await ensureStreams(link, { maxBytes: { EV_BILLING: 5_000, EV_BATCH: 3_000 } });
    expect(await config()).toMatchObject({ max_bytes: 20_000 });
  });

  test('a full stream is told as such and keeps what it has', async () => {
    const log = new NatsEventLog(link, { consumerName: 'test' });
    const append = (index: number): Promise<unknown> => log.append({
      ref: { context: 'batch', aggregate: 'batch-job', id: 'batch_1' }, events: [{ type: 'batch-job.cancel-requested.v1', data: { batchId: 'batch_1' } }],
      expected: 'any', commandId: `cmd_${index}`, source: 'penstock/test', nowMs: 0, correlationId: 'c', causationId: 'c',
    });
    const full = async (): Promise<void> => {
      for (let index = 0; index < 100; index += 1) await append(index);
    };
    await expect(full()).rejects.toThrow(new EventLogFullError('EV_BATCH'));
    expect(await log.load({ context: 'batch', aggregate: 'batch-job', id: 'batch_1' })).not.toHaveLength(0);
  });

  test('a snapshot of several chunks comes back, and the newer one wins', async () => {
    const store = new NatsSnapshotStore(link);
    expect(await store.load('fleet')).toBeUndefined();
    const noise = Array.from({ length: 60_000 }, () => Math.random().toString(36));
    await store.save('fleet', { version: 1, positions: { EV_FLEET: 7 }, state: { noise } });
    expect(await store.load('fleet')).toEqual({ version: 1, positions: { EV_FLEET: 7 }, state: { noise } });
    await store.save('fleet', { version: 2, positions: {}, state: 'small' });
    expect(await store.load('fleet')).toEqual({ version: 2, positions: {}, state: 'small' });
  });

  test('signals reach wildcard listeners, and what is not JSON is dropped', async () => {
    const signals = new NatsSignals(link);
    const heard: unknown[] = [];
    const arrived = new Promise<void>((resolve) => {
      void signals.subscribe('tele.node.*', (data, subject) => {
        heard.push([subject, data]);
        if ((data as { last?: boolean }).last === true) resolve();
      });
    });
    link.connection.publish('tele.node.n1', 'not json');
    signals.publish('tele.node.n2', { load: 1 });
    signals.publish('tele.replica.r1', { load: 2 });
    signals.publish('tele.node.n3', { last: true });
    await arrived;
    expect(heard).toEqual([['tele.node.n2', { load: 1 }], ['tele.node.n3', { last: true }]]);
  });

  test('health and the event log tell that the server is gone', async () => {
    const log = new NatsEventLog(link, { consumerName: 'test', totalTimeoutMs: 200 });
    expect(await natsHealth(link).check()).toBeUndefined();
    await server.kill();
    await eventually(() => link.state(), (state) => state === 'disconnected');
    await expect(log.load({ context: 'batch', aggregate: 'batch-job', id: 'batch_1' })).rejects.toThrow(EventLogUnavailableError);
    expect(await natsHealth(link).check()).toMatch(/is disconnected/);
    await server.restart();
  });
});

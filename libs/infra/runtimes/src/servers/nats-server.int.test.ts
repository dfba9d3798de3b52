import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { startTestServers, type TestServers } from '../start-test-servers.js';

describe('the embedded NATS server', () => {
  let servers: TestServers<'nats'>;
  beforeAll(async () => {
    servers = await startTestServers(['nats'], { natsSyncAlways: true });
  });
  afterAll(() => servers.close());

  const open = (password?: string): Promise<NatsConnection> => {
    const url = new URL(servers.natsUrl);
    return connect({ servers: url.host, user: url.username, pass: password ?? url.password, reconnect: false, timeout: 5_000 });
  };

  test('stores events that survive kill -9 and an orderly restart', async () => {
    const first = await open();
    await (await jetstreamManager(first)).streams.add({ name: 'KEPT', subjects: ['kept.>'] });
    const { seq } = await jetstream(first).publish('kept.a', 'one');
    expect(seq).toBe(1);
    await servers.kill('nats');
    await first.closed();

    await servers.restart('nats');
    const second = await open();
    await jetstream(second).publish('kept.a', 'two');
    await second.close();

    await servers.restart('nats');
    const third = await open();
    const info = await (await jetstreamManager(third)).streams.info('KEPT');
    expect(info.state.messages).toBe(2);
    await third.close();
  });

  test('refuses a wrong password and no password', async () => {
    await expect(open('wrong')).rejects.toThrow(/Authorization Violation/);
    await expect(connect({ servers: new URL(servers.natsUrl).host, reconnect: false, timeout: 5_000 })).rejects.toThrow(/Authorization Violation/);
  });

  test('listens on the loopback address only and is new enough', async () => {
    const connection = await open();
    expect(connection.info?.host).toBe('127.0.0.1');
    expect(Number(connection.info?.version.split('.')[1])).toBeGreaterThanOrEqual(14);
    await connection.close();
  });
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { defineConfig, EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import { startTestServers, type TestServers } from '../start-test-servers.js';

interface Note {
  id: number;
  text: string;
}
const note = new EntitySchema<Note>({ name: 'Note', tableName: 'note', properties: { id: { type: 'integer', primary: true }, text: { type: 'text' } } });

describe('the embedded PostgreSQL', () => {
  let servers: TestServers<'postgres'>;
  beforeAll(async () => {
    servers = await startTestServers(['postgres']);
  });
  afterAll(() => servers.close());

  const open = (url = servers.databaseUrl): Promise<MikroORM> => MikroORM.init(defineConfig({ entities: [note], clientUrl: url }));

  async function rows(): Promise<unknown> {
    const orm = await open();
    const found: unknown = await orm.em.getConnection().execute('select id, text from note order by id');
    await orm.close();
    return found;
  }

  test('keeps committed rows over kill -9 and an orderly restart', async () => {
    const orm = await open();
    await orm.em.getConnection().execute('create table note (id int primary key, text text not null)');
    await orm.em.getConnection().execute("insert into note values (1, 'kept')");
    await orm.close();
    await servers.kill('postgres');
    await servers.restart('postgres');
    expect(await rows()).toEqual([{ id: 1, text: 'kept' }]);
    await servers.restart('postgres');
    expect(await rows()).toEqual([{ id: 1, text: 'kept' }]);
  });

  test('refuses a wrong password', async () => {
    const url = new URL(servers.databaseUrl);
    url.password = 'wrong';
    const orm = await open(url.href);
    await expect(orm.em.getConnection().execute('select 1')).rejects.toThrow(/password authentication failed/);
    await orm.close();
  });

  test('listens on the loopback address only, uses scram and has no Unix socket', async () => {
    const orm = await open();
    const setting = async (name: string): Promise<unknown> => (await orm.em.getConnection().execute(`show ${name}`) as unknown[])[0];
    expect(await setting('listen_addresses')).toEqual({ listen_addresses: '127.0.0.1' });
    expect(await setting('unix_socket_directories')).toEqual({ unix_socket_directories: '' });
    expect(await setting('password_encryption')).toEqual({ password_encryption: 'scram-sha-256' });
    await orm.close();
  });
});

import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ClickHouseError, ClickHouseLogLevel, createClient, type ClickHouseClient, type ClickHouseSettings } from '@clickhouse/client';
import { startTestServers, type TestServers } from '../start-test-servers.js';

describe("the embedded ClickHouse, through ClickHouse's stock client", () => {
  let servers: TestServers<'clickhouse'>;
  let client: ClickHouseClient;
  const quiet = { log: { level: ClickHouseLogLevel.OFF } };
  beforeAll(async () => {
    servers = await startTestServers(['clickhouse']);
    client = createClient({ url: servers.clickhouseUrl, ...quiet });
    await client.command({ query: 'CREATE TABLE usage (id UInt64, model String, tokens UInt32) ENGINE = ReplacingMergeTree ORDER BY id' });
  });
  afterAll(async () => {
    await client.close();
    await servers.close();
  });

  async function select(query: string, params: Record<string, unknown> = {}, settings: ClickHouseSettings = {}): Promise<unknown[]> {
    const result = await client.query({ query, format: 'JSONEachRow', query_params: params, clickhouse_settings: settings });
    return result.json();
  }
  const errorOf = (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined, (error: unknown) => error);

  test('answers a ping', async () => {
    expect(await client.ping()).toMatchObject({ success: true });
    expect(await client.ping({ select: true })).toMatchObject({ success: true });
  });

  test('inserts rows and streams, and binds parameters of every shape', async () => {
    await client.insert({ table: 'usage', values: [{ id: 1, model: "it's;\t-- odd", tokens: 5 }], format: 'JSONEachRow' });
    const lines = Readable.from(Array.from({ length: 2_000 }, (_, index) => ({ id: 100 + index, model: 'm', tokens: 1 })));
    await client.insert({ table: 'usage', values: lines, format: 'JSONEachRow' });
    expect(await select('SELECT count() AS n, sum(tokens) AS tokens FROM usage')).toEqual([{ n: 2_001, tokens: 2_005 }]);
    const bound = await select('SELECT id FROM usage WHERE model = {model:String} AND id IN {ids:Array(UInt64)} AND {nothing:Nullable(String)} IS NULL', {
      model: "it's;\t-- odd", ids: [1, 2], nothing: null,
    });
    expect(bound).toEqual([{ id: 1 }]);
    const backslash = 'a\\b\nc';
    expect(await select('SELECT {text:String} AS text', { text: backslash })).toEqual([{ text: backslash }]);
  });

  test('takes an insert of no rows', async () => {
    await client.insert({ table: 'usage', values: [], format: 'JSONEachRow' });
    await client.insert({ table: 'usage', values: Readable.from([]), format: 'JSONEachRow' });
    expect(await select("SELECT count() AS n FROM usage WHERE model = 'nobody'")).toEqual([{ n: 0 }]);
  });

  test('settings hold for one query only', async () => {
    const settings: ClickHouseSettings = { max_threads: 1, insert_deduplication_token: 'once' };
    const query = "SELECT getSetting('max_threads') AS threads, getSetting('insert_deduplication_token') AS token";
    const [before] = await select(query);
    expect(await select(query, {}, settings)).toEqual([{ threads: 1, token: 'once' }]);
    expect(await errorOf(select('SELECT 1', {}, { max_threads: 1, no_such_setting: 1 } as ClickHouseSettings))).toMatchObject({ code: '115' });
    expect(await select(query)).toEqual([before]);
  });

  test('one client keeps its database while another uses another one', async () => {
    await client.command({ query: 'CREATE DATABASE IF NOT EXISTS other' });
    const url = new URL(servers.clickhouseUrl);
    url.pathname = '/other';
    const second = createClient({ url: url.href, ...quiet });
    const database = async (from: ClickHouseClient): Promise<unknown> => (await from.query({ query: 'SELECT currentDatabase() AS name', format: 'JSONEachRow' })).json();
    const answers = await Promise.all([client, second, client, second].map(database));
    expect(answers).toEqual([[{ name: 'penstock' }], [{ name: 'other' }], [{ name: 'penstock' }], [{ name: 'other' }]]);
    await second.close();
  });

  test('errors carry ClickHouse codes', async () => {
    const unknownTable = await errorOf(select('SELECT * FROM nowhere'));
    expect(unknownTable).toBeInstanceOf(ClickHouseError);
    expect(unknownTable).toMatchObject({ code: '60', type: 'UNKNOWN_TABLE' });
    expect(await errorOf(select('SELECT FROM WHERE'))).toMatchObject({ code: '62', type: 'SYNTAX_ERROR' });
    expect(await errorOf(client.command({ query: 'SELECT 1; SELECT 2' }))).toMatchObject({ code: '62' });
    expect(await errorOf(client.insert({ table: 'usage', values: [{ id: 'x' }], format: 'JSONEachRow' }))).toMatchObject({ code: '27' });
  });

  test('refuses a wrong password, an unknown user and no credentials', async () => {
    const { username, password, host } = new URL(servers.clickhouseUrl);
    for (const [name, key] of [[username, 'wrong'], ['stranger', password]] as const) {
      const stranger = createClient({ url: `http://${host}`, username: name, password: key, ...quiet });
      expect(await errorOf(stranger.command({ query: 'SELECT 1' }))).toMatchObject({ code: '516', type: 'AUTHENTICATION_FAILED' });
      await stranger.close();
    }
    const bare = await fetch(`http://${host}/?query=SELECT%201`);
    expect([bare.status, bare.headers.get('x-clickhouse-exception-code')]).toEqual([403, '516']);
    const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password };
    expect(await (await fetch(`http://${host}/?query=SELECT%201`, { headers })).text()).toBe('1\n');
    expect((await fetch(`http://${host}/?query=DROP%20TABLE%20usage`, { headers })).headers.get('x-clickhouse-exception-code')).toBe('164');
  });

  test('refuses a body over the limit and goes on serving', async () => {
    const { username, password, host } = new URL(servers.clickhouseUrl);
    const line = `${JSON.stringify({ id: 9, model: 'x'.repeat(1_000_000), tokens: 1 })}\n`;
    const body = Readable.from((function* lines() { for (let index = 0; index < 80; index += 1) yield line; })());
    const writer = createClient({ url: `http://${host}`, username, password, ...quiet });
    const refused = await errorOf(writer.exec({ query: 'INSERT INTO penstock.usage FORMAT JSONEachRow', values: body }));
    await writer.close();
    // The answer comes while the rows are still being sent, so the client may see the closed connection first.
    expect(refused instanceof ClickHouseError ? refused.code : (refused as NodeJS.ErrnoException).code).toMatch(/^(619|EPIPE|ECONNRESET)$/);
    expect(await select('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await select('SELECT count() AS n FROM usage WHERE id = 9')).toEqual([{ n: 0 }]);
  });

  test('many queries at once all get their own answer', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => select('SELECT {value:UInt32} AS value', { value: index })));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, index) => [{ value: index }]));
  });

  test('rows survive kill -9 and an orderly restart', async () => {
    const before = await select('SELECT count() AS n FROM usage');
    await servers.kill('clickhouse');
    await servers.restart('clickhouse');
    expect(await select('SELECT count() AS n FROM usage')).toEqual(before);
    await servers.restart('clickhouse');
    expect(await select('SELECT count() AS n FROM usage')).toEqual(before);
  });
});

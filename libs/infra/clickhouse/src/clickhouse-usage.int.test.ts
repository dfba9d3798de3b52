import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { queryUsage } from '@penstock/contract-commands';
import { usageRecordedV1, type UsageRecord } from '@penstock/contract-events';
import { planBuckets, UsageFold, UsageStoreUnavailableError, type SequencedUsage } from '@penstock/domain-usage';
import { startTestServers, type TestServers } from '@penstock/infra-runtimes';
import { ClickhouseUsageReports } from './clickhouse-usage-reports.js';
import { ClickhouseUsageSink } from './clickhouse-usage-sink.js';
import { connectClickhouse, type ClickhouseLink } from './connect-clickhouse.js';

const DAY = 86_400;
/** A whole day. */
const T0 = Date.parse('2026-11-29T00:00:00.000Z') / 1_000;
const example = usageRecordedV1.schema.parse(usageRecordedV1.example);

let servers: TestServers<'clickhouse'>;
let link: ClickhouseLink;
let sink: ClickhouseUsageSink;
let reports: ClickhouseUsageReports;
let run = 0;

beforeAll(async () => {
  servers = await startTestServers(['clickhouse']);
}, 180_000);

afterAll(async () => {
  await servers?.close();
});

// Every test has a database of its own.
beforeEach(() => {
  run += 1;
  const url = new URL(servers.clickhouseUrl);
  url.pathname = `/usage_test_${run}`;
  link = connectClickhouse(url.toString());
  sink = new ClickhouseUsageSink(link);
  reports = new ClickhouseUsageReports(link);
});

afterEach(() => link.close());

function usage(sequence: number, fields: Partial<UsageRecord> = {}): SequencedUsage {
  const startedAt = new Date((T0 + sequence * 60) * 1_000).toISOString();
  return { sequence, record: { ...example, requestId: `req_${sequence}`, startedAt, promptTokens: 10, cachedTokens: 4, completionTokens: 5, reasoningTokens: 1, ...fields } };
}

async function ask(fields: Record<string, unknown>, from = reports) {
  const query = queryUsage.request.parse({ organisationId: 'org_01', startTime: T0, endTime: T0 + DAY, limit: 31, ...fields });
  const planned = planBuckets(query);
  if (planned.kind === 'refused') throw new Error(planned.refusal.message);
  return from.buckets(query, planned.plan);
}

describe('usage in ClickHouse', () => {
  test('counts a request once: in one insert, in several, in the same again, and merged', async () => {
    const records = [usage(1), usage(2), usage(3)];
    await sink.write([...records, usage(1)]);
    await sink.write(records);
    await sink.write(records);
    await sink.write([usage(3), usage(4)]);
    const totals = await reports.totals();
    expect(totals).toMatchObject({ requests: 4, promptTokens: 40, completionTokens: 20, lastSequence: 4 });
    expect(totals.rows).toBeGreaterThan(4);
    await link.with((client) => client.command({ query: 'OPTIMIZE TABLE usage_raw_v1 FINAL' }));
    expect(await reports.totals()).toEqual({ requests: 4, promptTokens: 40, completionTokens: 20, rows: 4, lastSequence: 4 });
    expect(await reports.lastSequence()).toBe(4);
  });

  test('of two records of one request the first in the stream counts, whatever arrives first and whenever it started', async () => {
    const late = usage(9, { requestId: 'req_x', promptTokens: 99, startedAt: new Date((T0 + DAY) * 1_000).toISOString() });
    const first = usage(2, { requestId: 'req_x', promptTokens: 7 });
    await sink.write([late]);
    await sink.write([first]);
    expect(await reports.totals()).toMatchObject({ requests: 1, promptTokens: 7 });
    const { buckets } = await ask({ endTime: T0 + 2 * DAY });
    expect(buckets.map((bucket) => bucket.results.map((result) => result.input_tokens))).toEqual([[7], []]);
    expect((await reports.sums(1, 5)).map((sum) => sum.promptTokens)).toEqual([7]);
  });

  test('a completed record takes the place of one that was cut off, whatever arrives first', async () => {
    await sink.write([usage(5, { requestId: 'req_y', status: 'completed', completionTokens: 40 })]);
    await sink.write([usage(3, { requestId: 'req_y', status: 'aborted', completionTokens: 2 })]);
    await sink.write([usage(8, { requestId: 'req_y', status: 'completed', completionTokens: 77 })]);
    expect(await reports.totals()).toMatchObject({ requests: 1, completionTokens: 40 });
  });

  test('a different insert with the same settings is not taken for a copy', async () => {
    await sink.write([usage(1)]);
    await sink.write([usage(2)]);
    await link.with((client) => client.command({ query: `INSERT INTO usage_raw_v1 (organisation_id, request_id, started_at, sequence) VALUES ('org_01', 'req_plain', now64(3), 3)` }));
    expect((await reports.totals()).requests).toBe(3);
  });

  test('sums are those of the stream, to the token, whatever was delivered twice and in any order', async () => {
    const stream = Array.from({ length: 60 }, (_, index) => usage(index + 1, { requestId: `req_${(index * 7) % 41}`, keyId: `key_${index % 3}`, modelName: `m${index % 2}`, promptTokens: index * 13, completionTokens: index }));
    for (let from = 0; from < stream.length; from += 7) await sink.write(stream.slice(Math.max(0, from - 3), from + 7).toReversed());
    const fold = new UsageFold();
    for (const record of stream) fold.add(record);
    expect(await reports.sums(1, 60)).toEqual(fold.sums());
    expect(await reports.sums(1, 0)).toEqual([]);
  });

  test('keeps every field as it was, with awkward text', async () => {
    const awkward = usage(1, { errorCode: "a'b\\c\n\t\"{x}", finishReason: null, replicaId: null, batchId: 'batch_1', ttftMs: null, queueMs: 0.25, promptTokens: Number.MAX_SAFE_INTEGER, stream: true });
    await sink.write([awkward]);
    const rows = await link.with(async (client) => (await client.query({ query: 'SELECT * FROM usage_raw_v1', format: 'JSONEachRow' })).json<Record<string, unknown>>());
    expect(rows[0]).toMatchObject({ error_code: awkward.record.errorCode, finish_reason: null, replica_id: null, batch_id: 'batch_1', ttft_ms: null, queue_ms: 0.25, stream: true, started_at: '2026-11-29 00:01:00.000' });
    expect((await reports.totals()).promptTokens).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('reports', () => {
  beforeEach(async () => {
    await sink.write([
      usage(0, { requestId: 'a', projectId: 'proj_1', keyId: 'key_1', modelName: 'm1' }),
      usage(61, { requestId: 'b', projectId: 'proj_1', keyId: 'key_2', modelName: 'm2', batchId: 'batch_1' }),
      usage(62, { requestId: 'c', projectId: 'proj_2', keyId: 'key_2', modelName: 'm1' }),
      usage(5, { requestId: 'd', operation: 'embeddings' }),
      usage(6, { requestId: 'e', organisationId: 'org_02' }),
    ]);
  });

  const resultsOf = async (fields: Record<string, unknown>) => (await ask(fields)).buckets.flatMap((bucket) => bucket.results);

  test('sum one organisation only', async () => {
    expect(await resultsOf({})).toEqual([expect.objectContaining({ input_tokens: 30, input_cached_tokens: 12, output_tokens: 15, num_model_requests: 3, project_id: null, model: null, batch: null })]);
    expect(await resultsOf({ operation: 'embeddings' })).toEqual([expect.objectContaining({ num_model_requests: 1 })]);
    expect(await resultsOf({ organisationId: 'org_03' })).toEqual([]);
    expect(await reports.totals('org_02')).toMatchObject({ requests: 1, rows: 1, lastSequence: 6 });
    expect(await reports.totals('org_03')).toEqual({ requests: 0, promptTokens: 0, completionTokens: 0, rows: 0, lastSequence: 0 });
  });

  test('group by project, key, model and batch', async () => {
    const results = await resultsOf({ groupBy: ['project_id', 'api_key_id', 'model', 'batch', 'user_id'] });
    expect(results.map((result) => [result.project_id, result.api_key_id, result.model, result.batch, result.user_id])).toEqual([
      ['proj_1', 'key_1', 'm1', false, null], ['proj_1', 'key_2', 'm2', true, null], ['proj_2', 'key_2', 'm1', false, null],
    ]);
  });

  test('filter by project, key, model and request', async () => {
    expect(await resultsOf({ projectIds: ['proj_2'] })).toEqual([expect.objectContaining({ num_model_requests: 1 })]);
    expect(await resultsOf({ apiKeyIds: ['key_2'], models: ['m1', "it's"] })).toEqual([expect.objectContaining({ num_model_requests: 1 })]);
    expect(await resultsOf({ requestId: 'b' })).toEqual([expect.objectContaining({ num_model_requests: 1, input_tokens: 10 })]);
  });

  test('tell one request as it was recorded, to its organisation or to whoever may see all', async () => {
    const odd = usage(7, { requestId: 'f', organisationId: 'org_02', status: 'failed', finishReason: null, errorCode: 'queue_timeout', httpStatus: 429, replicaId: null, ttftMs: null, queueMs: 30_000.25, startedAt: '2026-11-29T12:00:00.007Z' });
    await sink.write([odd]);
    expect(await reports.request('f')).toEqual(odd.record);
    expect(await reports.request('f', 'org_02')).toEqual(odd.record);
    expect(await reports.request('f', 'org_01')).toBeUndefined();
  });

  test('page through buckets, empty ones included, cut at the asked seconds', async () => {
    const hours = await ask({ bucketWidth: '1h', endTime: T0 + 3 * 3_600, limit: 2 });
    expect(hours.buckets.map((bucket) => bucket.results.map((result) => result.num_model_requests))).toEqual([[1], [2]]);
    const rest = await ask({ bucketWidth: '1h', endTime: T0 + 3 * 3_600, limit: 2, page: hours.nextPage });
    expect(rest).toEqual({ buckets: [expect.objectContaining({ start_time: T0 + 7_200, results: [] })], nextPage: null });
    expect(await resultsOf({ startTime: T0 + 3_661, endTime: T0 + 62 * 60 })).toEqual([]);
    expect(await resultsOf({ startTime: T0 + 3_660, endTime: T0 + 62 * 60 })).toEqual([expect.objectContaining({ num_model_requests: 1 })]);
  });

  test('cut a page short at a bucket when it would have too many results', async () => {
    const small = new ClickhouseUsageReports(link, 2);
    const asked = { bucketWidth: '1h', endTime: T0 + 7_200, groupBy: ['project_id'] };
    const first = await ask(asked, small);
    expect(first.buckets.map((bucket) => bucket.results.length)).toEqual([1]);
    const second = await ask({ ...asked, page: first.nextPage }, small);
    expect(second.buckets.map((bucket) => bucket.results.length)).toEqual([2]);
    expect(second.nextPage).toBeNull();
    await expect(ask(asked, new ClickhouseUsageReports(link, 0))).rejects.toThrow('ask for a narrower bucket_width');
  });
});

describe('a ClickHouse that is not there', () => {
  test('fails writes and reports as unavailable, says so in readiness, and delays no start', async () => {
    const away = connectClickhouse('http://default:x@127.0.0.1:9/penstock');
    await expect(new ClickhouseUsageSink(away).write([usage(1)])).rejects.toBeInstanceOf(UsageStoreUnavailableError);
    await expect(new ClickhouseUsageReports(away).totals()).rejects.toBeInstanceOf(UsageStoreUnavailableError);
    expect(await away.check()).toContain('not available');
    await away.close();
  });

  test('a wrong password is unavailable too, and names no secret', async () => {
    const url = new URL(servers.clickhouseUrl);
    url.password = 'wrong-secret';
    const locked = connectClickhouse(url.toString());
    await expect(new ClickhouseUsageSink(locked).write([usage(1)])).rejects.toThrow(/code 516/);
    expect(await locked.check()).not.toContain('wrong-secret');
    await locked.close();
  });

  test('a schema that was dropped is made again', async () => {
    await sink.write([usage(1)]);
    await link.with((client) => client.command({ query: 'DROP TABLE usage_raw_v1' }));
    await expect(sink.write([usage(2)])).rejects.toBeInstanceOf(UsageStoreUnavailableError);
    await sink.write([usage(2)]);
    expect(await reports.totals()).toMatchObject({ requests: 1, lastSequence: 2 });
    expect(await link.check()).toBeUndefined();
  });
});

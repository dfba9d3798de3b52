import { usageRecordedV1, type UsageRecord } from '@penstock/contract-events';
import {
  fillBuckets, pageToken, type BucketPlan, type StoredUsageTotals, type UsageBuckets, type UsageQuery, type UsageReports, type UsageRow, type UsageSum,
} from '@penstock/domain-usage';
import { z } from 'zod';
import type { ClickhouseLink } from './connect-clickhouse.js';

/** Rows of one answer at most; the page is cut at a bucket before more. */
export const RESULT_ROWS_MAX = 50_000;

/** 64-bit sums come as numbers or, beyond what a double holds exactly, as text. */
const whole = z.union([z.int(), z.string().regex(/^\d+$/).transform(Number)]).refine(Number.isSafeInteger, 'the sum is larger than a number can hold exactly');

const bucketRow = z.object({
  bucketStart: whole, inputTokens: whole, cachedTokens: whole, outputTokens: whole, requests: whole,
  projectId: z.string().nullable(), apiKeyId: z.string().nullable(), model: z.string().nullable(), batch: z.boolean().nullable(),
});
const totalsRow = z.object({ requests: whole, promptTokens: whole, completionTokens: whole, rows: whole, lastSequence: whole });
const sumRow = z.object({
  organisationId: z.string(), projectId: z.string(), keyId: z.string(), modelName: z.string(),
  requests: whole, promptTokens: whole, cachedTokens: whole, completionTokens: whole, reasoningTokens: whole,
});

/** A row under the names of the event it came from. */
const REQUEST_COLUMNS = `request_id AS requestId, organisation_id AS organisationId, project_id AS projectId, key_id AS keyId, endpoint_id AS endpointId, model_name AS modelName,
  model_version_id AS modelVersionId, replica_id AS replicaId, batch_id AS batchId, operation, stream, status, finish_reason AS finishReason, http_status AS httpStatus, error_code AS errorCode,
  toFloat64(prompt_tokens) AS promptTokens, toFloat64(cached_tokens) AS cachedTokens, toFloat64(completion_tokens) AS completionTokens, toFloat64(reasoning_tokens) AS reasoningTokens,
  tokens_estimated AS tokensEstimated, concat(formatDateTime(started_at, '%Y-%m-%dT%H:%i:%S', 'UTC'), '.', leftPad(toString(toUnixTimestamp64Milli(started_at) % 1000), 3, '0'), 'Z') AS startedAt, queue_ms AS queueMs, ttft_ms AS ttftMs, duration_ms AS durationMs, engine_ms AS engineMs`;

/** Columns a question may group by. Users and service tiers are not recorded, so they stay null. */
const GROUP_COLUMNS = { project_id: 'project_id', api_key_id: 'key_id', model: 'model_name', batch: 'isNotNull(batch_id)' } as const;

/** Answers from `usage_raw_v1`, each request counted once. */
export class ClickhouseUsageReports implements UsageReports {
  constructor(private readonly link: ClickhouseLink, private readonly resultRowsMax = RESULT_ROWS_MAX) {}

  async buckets(query: UsageQuery, plan: BucketPlan): Promise<UsageBuckets> {
    const rows = await this.select(bucketRow, bucketSql(query, this.resultRowsMax), {
      organisation: query.organisationId,
      operations: JSON.stringify(query.operation === 'completions' ? ['chat', 'completions'] : ['embeddings']),
      fromMs: plan.from * 1_000,
      toMs: plan.to * 1_000,
      width: plan.widthSeconds,
      projects: JSON.stringify(query.projectIds),
      keys: JSON.stringify(query.apiKeyIds),
      models: JSON.stringify(query.models),
      request: query.requestId ?? '',
    });
    return rows.length > this.resultRowsMax ? cutShort(plan, rows) : fillBuckets(plan, rows);
  }

  async request(requestId: string, organisationId?: string): Promise<UsageRecord | undefined> {
    // The sort key begins with the organisation, so one that is named makes this a look at one place.
    const sql = `SELECT ${REQUEST_COLUMNS} FROM usage_raw_v1 FINAL WHERE request_id = {request:String} ${organisationId === undefined ? '' : 'AND organisation_id = {organisation:String}'} LIMIT 1`;
    const [row] = await this.select(usageRecordedV1.schema, sql, { request: requestId, organisation: organisationId ?? '' });
    return row;
  }

  async totals(organisationId?: string): Promise<StoredUsageTotals> {
    const where = organisationId === undefined ? '' : 'WHERE organisation_id = {organisation:String}';
    const sql = `SELECT count() AS requests, sum(prompt_tokens) AS promptTokens, sum(completion_tokens) AS completionTokens,
      (SELECT count() FROM usage_raw_v1 ${where}) AS rows, (SELECT max(sequence) FROM usage_raw_v1 ${where}) AS lastSequence
      FROM usage_raw_v1 FINAL ${where}`;
    const [row] = await this.select(totalsRow, sql, { organisation: organisationId ?? '' });
    return row ?? { requests: 0, promptTokens: 0, completionTokens: 0, rows: 0, lastSequence: 0 };
  }

  async lastSequence(): Promise<number> {
    const [row] = await this.select(z.object({ last: whole }), 'SELECT max(sequence) AS last FROM usage_raw_v1', {});
    return row?.last ?? 0;
  }

  sums(fromSequence: number, toSequence: number): Promise<readonly UsageSum[]> {
    const sql = `SELECT organisation_id AS organisationId, project_id AS projectId, key_id AS keyId, model_name AS modelName, count() AS requests,
      sum(prompt_tokens) AS promptTokens, sum(cached_tokens) AS cachedTokens, sum(completion_tokens) AS completionTokens, sum(reasoning_tokens) AS reasoningTokens
      FROM usage_raw_v1 FINAL WHERE sequence BETWEEN {from:UInt64} AND {to:UInt64}
      GROUP BY organisationId, projectId, keyId, modelName ORDER BY organisationId, projectId, keyId, modelName`;
    return this.select(sumRow, sql, { from: fromSequence, to: toSequence });
  }

  private async select<Row>(row: z.ZodType<Row>, query: string, parameters: Record<string, unknown>): Promise<Row[]> {
    const rows = await this.link.with(async (client) => (await client.query({ query, query_params: parameters, format: 'JSONEachRow' })).json());
    return z.array(row).parse(rows);
  }
}

function bucketSql(query: UsageQuery, rowsMax: number): string {
  const grouped = (group: keyof typeof GROUP_COLUMNS): string => (query.groupBy.includes(group) ? GROUP_COLUMNS[group] : 'NULL');
  return `SELECT intDiv(toUnixTimestamp64Milli(started_at), 1000 * {width:UInt32}) * {width:UInt32} AS bucketStart,
    sum(prompt_tokens) AS inputTokens, sum(cached_tokens) AS cachedTokens, sum(completion_tokens) AS outputTokens, count() AS requests,
    ${grouped('project_id')} AS projectId, ${grouped('api_key_id')} AS apiKeyId, ${grouped('model')} AS model, ${query.groupBy.includes('batch') ? `CAST(${GROUP_COLUMNS.batch}, 'Bool')` : 'NULL'} AS batch
    FROM usage_raw_v1 FINAL
    WHERE organisation_id = {organisation:String} AND has(${list('operations')}, operation)
      AND started_at >= fromUnixTimestamp64Milli({fromMs:Int64}) AND started_at < fromUnixTimestamp64Milli({toMs:Int64})
      AND ${isInOrAny('projects', 'project_id')} AND ${isInOrAny('keys', 'key_id')} AND ${isInOrAny('models', 'model_name')}
      AND ({request:String} = '' OR request_id = {request:String})
    GROUP BY bucketStart, projectId, apiKeyId, model, batch
    ORDER BY bucketStart, projectId, apiKeyId, model, batch
    LIMIT ${rowsMax + 1}`;
}

/** A list travels as JSON text: in a parameter of an array type, a quote inside an element cannot be written. */
function list(parameter: string): string {
  return `JSONExtract({${parameter}:String}, 'Array(String)')`;
}

function isInOrAny(parameter: string, column: string): string {
  return `(empty(${list(parameter)}) OR has(${list(parameter)}, ${column}))`;
}

/** Keeps the buckets that are there in full. */
function cutShort(plan: BucketPlan, rows: readonly UsageRow[]): UsageBuckets {
  const cut = rows.at(-1)?.bucketStart ?? plan.firstStart;
  if (cut === plan.firstStart) throw new RangeError(`One bucket has more than ${rows.length - 1} results: ask for a narrower bucket_width or fewer columns in group_by.`);
  const count = (cut - plan.firstStart) / plan.widthSeconds;
  return fillBuckets({ ...plan, count, to: cut, nextPage: pageToken(cut) }, rows.filter((row) => row.bucketStart < cut));
}

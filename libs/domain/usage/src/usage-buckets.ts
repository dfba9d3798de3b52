import type { Refusal } from '@penstock/kernel';
import type { UsageBucket, UsageBuckets, UsageQuery } from './usage-reports.js';

const WIDTH_SECONDS = { '1m': 60, '1h': 3_600, '1d': 86_400 } as const;

/** The buckets of one page. All times are Unix seconds. */
export interface BucketPlan {
  readonly widthSeconds: number;
  /** Start of the first bucket, a multiple of the width. */
  readonly firstStart: number;
  readonly count: number;
  /** Requests that started in `[from, to)` belong to the page: the ends of the question cut the first and last bucket. */
  readonly from: number;
  readonly to: number;
  readonly nextPage: string | null;
}

/** One row of sums as a store gives it. Columns that the question does not group by are null. */
export interface UsageRow {
  readonly bucketStart: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly requests: number;
  readonly projectId: string | null;
  readonly apiKeyId: string | null;
  readonly model: string | null;
  readonly batch: boolean | null;
}

const PAGE_PATTERN = /^page_(\d{1,12})$/;

/** The token that asks for the page that begins with the bucket at `start`. */
export function pageToken(start: number): string {
  return `page_${start}`;
}

/** Cuts the asked time into buckets and takes one page of them. */
export function planBuckets(query: UsageQuery): { readonly kind: 'plan'; readonly plan: BucketPlan } | { readonly kind: 'refused'; readonly refusal: Refusal } {
  const widthSeconds = WIDTH_SECONDS[query.bucketWidth];
  if (query.endTime <= query.startTime) return refused('end_time', 'end_time must be later than start_time.');
  const begin = startOfBucket(query.startTime, widthSeconds);
  const end = Math.ceil(query.endTime / widthSeconds) * widthSeconds;
  const firstStart = query.page === null ? begin : readPage(query.page);
  if (firstStart === undefined || firstStart % widthSeconds !== 0 || firstStart < begin || firstStart >= end) {
    return refused('page', 'page is not a page of this question; use next_page of the answer before, with the other parameters unchanged.');
  }
  const count = Math.min(query.limit, (end - firstStart) / widthSeconds);
  const pageEnd = firstStart + count * widthSeconds;
  const plan = {
    widthSeconds, firstStart, count,
    from: Math.max(query.startTime, firstStart),
    to: Math.min(query.endTime, pageEnd),
    nextPage: pageEnd < end ? pageToken(pageEnd) : null,
  };
  return { kind: 'plan', plan };
}

/** Puts rows into the buckets of the page; a bucket without rows is there with no results. Rows keep their order. */
export function fillBuckets(plan: BucketPlan, rows: readonly UsageRow[]): UsageBuckets {
  const buckets: UsageBucket[] = Array.from({ length: plan.count }, (_, index) => {
    const start = plan.firstStart + index * plan.widthSeconds;
    return { object: 'bucket', start_time: start, end_time: start + plan.widthSeconds, results: [] };
  });
  for (const row of rows) buckets[(row.bucketStart - plan.firstStart) / plan.widthSeconds]?.results.push(toResult(row));
  return { buckets, nextPage: plan.nextPage };
}

function toResult(row: UsageRow): UsageBucket['results'][number] {
  return {
    object: 'organization.usage.completions.result',
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    input_cached_tokens: row.cachedTokens,
    input_audio_tokens: 0,
    output_audio_tokens: 0,
    num_model_requests: row.requests,
    project_id: row.projectId,
    user_id: null,
    api_key_id: row.apiKeyId,
    model: row.model,
    batch: row.batch,
    service_tier: null,
  };
}

function startOfBucket(time: number, widthSeconds: number): number {
  return Math.floor(time / widthSeconds) * widthSeconds;
}

function readPage(page: string): number | undefined {
  const start = PAGE_PATTERN.exec(page)?.[1];
  return start === undefined ? undefined : Number(start);
}

function refused(param: string, message: string): { readonly kind: 'refused'; readonly refusal: Refusal } {
  return { kind: 'refused', refusal: { code: 'invalid_value', message, param } };
}

import { Flags } from '@oclif/core';
import { usagePage } from '@penstock/contract-http';
import type { z } from 'zod';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const DAY_SECONDS = 86_400;
/** More buckets than a person reads or a script should fetch in one go. */
const BUCKETS_MAX = 10_000;

export class Usage extends ApiCommand {
  static override summary = 'Show token usage in time buckets, each request counted once.';
  static override examples = ['<%= config.bin %> usage --group-by model', '<%= config.bin %> usage --bucket 1h --days 1 --json'];
  static override flags = {
    bucket: Flags.string({ options: ['1m', '1h', '1d'], default: '1d', description: 'width of a bucket' }),
    days: Flags.integer({ default: 7, min: 1, max: 365, description: 'how far back to look' }),
    'group-by': Flags.string({ multiple: true, options: ['model', 'project_id', 'api_key_id', 'batch'], default: ['model'], description: 'one row for each value' }),
    request: Flags.string({ description: 'only the request with this `x-request-id`' }),
  };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Usage);
    const now = Math.floor(Date.now() / 1_000);
    const query = new URLSearchParams({ start_time: String(now - flags.days * DAY_SECONDS), bucket_width: flags.bucket });
    for (const group of flags['group-by']) query.append('group_by', group);
    if (flags.request !== undefined) query.set('request_id', flags.request);
    const client = this.clientFor(flags);
    const buckets: z.infer<typeof usagePage>['data'] = [];
    let page: z.infer<typeof usagePage> | undefined;
    do {
      if (page?.next_page) query.set('page', page.next_page);
      page = await client.call('GET', `/v1/organization/usage/completions?${query}`, usagePage);
      buckets.push(...page.data);
    } while (page.has_more && buckets.length < BUCKETS_MAX);
    const rows = buckets.flatMap((bucket) =>
      bucket.results.map((result) => [new Date(bucket.start_time * 1_000).toISOString(), result.model ?? '-', result.project_id ?? '-', result.api_key_id ?? '-', String(result.num_model_requests), String(result.input_tokens), String(result.input_cached_tokens), String(result.output_tokens)]),
    );
    this.log(table(['BUCKET', 'MODEL', 'PROJECT', 'KEY', 'REQUESTS', 'PROMPT', 'CACHED', 'COMPLETION'], rows));
    if (page.has_more) this.logToStderr('There are more buckets: use a wider --bucket or fewer --days.');
    return { ...page, data: buckets };
  }
}

import { Args, Flags } from '@oclif/core';
import { limitsBody, limitsList } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const shown = (value: number | string | null): string => (value === null ? '-' : String(value));

export class LimitsShow extends ApiCommand {
  static override summary = 'Show limits of organisations, projects and keys.';
  static override args = { subject: Args.string({ description: 'id of an organisation, a project or a key; everything when left out' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(LimitsShow);
    const query = args.subject === undefined ? '' : `?subject_id=${encodeURIComponent(args.subject)}`;
    const { data } = await this.clientFor(flags).call('GET', `/admin/v1/limits${query}`, limitsList);
    this.log(table(['SUBJECT', 'ID', 'MODEL', 'REQUESTS/MIN', 'TOKENS/MIN', 'CONCURRENT', 'CONTEXT', 'TIER'], data.map((set) => [
      set.subject, set.subject_id, set.model ?? 'all', shown(set.requests_per_minute), shown(set.tokens_per_minute), shown(set.concurrency), shown(set.context_tokens_max), shown(set.priority_tier),
    ])));
    return data;
  }
}

export class LimitsSet extends ApiCommand {
  static override summary = 'Set the limits of an organisation, a project or a key. What is left out is not limited.';
  static override args = { subject: Args.string({ required: true, description: 'id of an organisation, a project or a key' }) };
  static override flags = {
    model: Flags.string({ description: 'limit the use of this model; of all models together when left out' }),
    rpm: Flags.integer({ min: 1, description: 'requests per minute' }),
    tpm: Flags.integer({ min: 1, description: 'tokens per minute, prompts and answers together' }),
    concurrency: Flags.integer({ min: 1, description: 'requests at the same time' }),
    context: Flags.integer({ min: 1, description: 'tokens of one request, prompt and answer together' }),
    tier: Flags.string({ options: ['reserved', 'paid', 'best-effort', 'batch'], description: 'class in the queue' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(LimitsSet);
    const set = await this.clientFor(flags).call('POST', '/admin/v1/limits', limitsBody, {
      subject_id: args.subject, model: flags.model ?? null, requests_per_minute: flags.rpm ?? null, tokens_per_minute: flags.tpm ?? null, concurrency: flags.concurrency ?? null,
      context_tokens_max: flags.context ?? null, priority_tier: flags.tier ?? null,
    });
    this.log(`Limits of ${set.subject} ${set.subject_id} for ${set.model ?? 'all models'} are set.`);
    return set;
  }
}

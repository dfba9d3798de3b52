import { Args, Flags } from '@oclif/core';
import { eventBody, eventList, type EventBody } from '@penstock/contract-http';
import { ApiCommand, EXIT } from '../api-command.js';

const contexts = ['access', 'registry', 'fleet', 'scaling', 'routing', 'usage', 'billing', 'batch'];

function line(event: EventBody): string {
  return `${event.time}  ${event.stream}#${event.sequence}  ${event.type.padEnd(32)}  ${event.subject}  ${JSON.stringify(event.data)}`;
}

export class EventsTail extends ApiCommand {
  static override summary = 'Show the newest events of a context, and with --follow what arrives from now on.';
  static override examples = ['<%= config.bin %> events tail fleet', '<%= config.bin %> events tail scaling --follow'];
  static override args = { context: Args.string({ options: contexts, required: true, description: 'which stream' }) };
  static override flags = {
    follow: Flags.boolean({ char: 'f', description: 'go on until Ctrl-C' }),
    from: Flags.integer({ min: 1, description: 'first sequence to show; the newest events when left out' }),
    limit: Flags.integer({ min: 1, max: 1_000, default: 20, description: 'how many' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(EventsTail);
    const client = this.clientFor(flags);
    const query = new URLSearchParams({ context: args.context, limit: String(flags.limit) });
    if (flags.from !== undefined) query.set('from_sequence', String(flags.from));
    const { data } = await client.call('GET', `/admin/v1/events?${query}`, eventList);
    for (const event of data) this.log(line(event));
    if (!flags.follow) return data;
    const stop = new AbortController();
    process.once('SIGINT', () => stop.abort());
    const next = (data.at(-1)?.sequence ?? (flags.from ?? 1) - 1) + 1;
    try {
      for await (const event of client.follow(`/admin/v1/events?context=${args.context}&from_sequence=${next}&follow=true`, stop.signal)) {
        const parsed = eventBody.parse(event);
        if (this.jsonEnabled()) process.stdout.write(`${JSON.stringify(parsed)}\n`);
        else this.log(line(parsed));
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
    return data;
  }
}

export class EventsShow extends ApiCommand {
  static override summary = 'Show every event of one aggregate, such as a replica or an endpoint, in order.';
  static override examples = ['<%= config.bin %> events show fleet replica rep_01…'];
  static override args = {
    context: Args.string({ options: contexts, required: true, description: 'which stream' }),
    aggregate: Args.string({ required: true, description: 'kind of aggregate: replica, node, endpoint, model-version, endpoint-scale, api-key, batch-job…' }),
    id: Args.string({ required: true, description: 'its id' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(EventsShow);
    const query = new URLSearchParams({ context: args.context, aggregate: args.aggregate, id: args.id, limit: '1000' });
    const { data } = await this.clientFor(flags).call('GET', `/admin/v1/events?${query}`, eventList);
    if (data.length === 0) this.error(`No events of ${args.aggregate} ${args.id} in ${args.context}. Look for the id with \`ps\`, \`models\` or \`events tail ${args.context}\`.`, { exit: EXIT.failed });
    for (const event of data) {
      this.log(`${event.stream}#${event.sequence}  ${event.time}  ${event.type}`);
      this.log(`  by ${event.source}, caused by ${event.causation_id}, correlation ${event.correlation_id}`);
      this.log(`  ${JSON.stringify(event.data, undefined, 2).replaceAll('\n', '\n  ')}`);
    }
    return data;
  }
}

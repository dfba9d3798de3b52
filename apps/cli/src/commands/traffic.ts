import { Args, Flags } from '@oclif/core';
import { trafficSplitBody, trafficSplitList, trafficSplitRemoved, type TrafficSplitBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const ROUTE = '/admin/v1/traffic-splits';

function tableOf(splits: readonly TrafficSplitBody[]): string {
  return table(['MODEL', 'ENDPOINT', 'VERSION', 'WEIGHT', 'SHARE', 'STICKY', 'REASON'], splits.flatMap(({ model, targets, sticky, reason }) => targets.map((target) => [
    model, target.endpoint, target.model_version_id ?? '-', String(target.weight), `${(100 * target.share).toFixed(1)} %`, sticky, reason,
  ])));
}

export class TrafficShow extends ApiCommand {
  static override summary = 'Show the names whose requests several endpoints share.';

  async run(): Promise<unknown> {
    const { flags } = await this.parse(TrafficShow);
    const { data } = await this.clientFor(flags).call('GET', ROUTE, trafficSplitList);
    this.log(data.length === 0 ? 'No name is split. Split one with penstock traffic set NAME ENDPOINT=WEIGHT ENDPOINT=WEIGHT.' : tableOf(data));
    return data;
  }
}

export class TrafficSet extends ApiCommand {
  static override summary = 'Spread the requests for a name over endpoints by weight. A weight of 0 takes an endpoint out at once.';
  static override examples = ['penstock traffic set assistant assistant-v1=95 assistant-v2=5 --sticky user'];
  static override strict = false;
  static override args = { model: Args.string({ required: true, description: 'the name that clients call' }) };
  static override flags = {
    sticky: Flags.string({ options: ['session', 'user', 'organisation', 'request'], default: 'user', description: 'whose requests stay at one endpoint' }),
    reason: Flags.string({ default: '', description: 'kept with the event' }),
  };

  async run(): Promise<unknown> {
    const { args, argv, flags } = await this.parse(TrafficSet);
    const targets = argv.slice(1).map((word) => this.targetOf(String(word)));
    if (targets.length === 0) this.error('No endpoint was named. Give each as ENDPOINT=WEIGHT, such as assistant-v1=95.', { exit: 2 });
    const set = await this.clientFor(flags).call('POST', ROUTE, trafficSplitBody, { model: args.model, targets, sticky: flags.sticky, reason: flags.reason });
    this.log(tableOf([set]));
    return set;
  }

  private targetOf(word: string): { readonly endpoint: string; readonly weight: number } {
    const match = /^(.+)=(\d{1,7})$/.exec(word);
    if (match === null) this.error(`${JSON.stringify(word)} is no target. Give each as ENDPOINT=WEIGHT with a whole weight, such as assistant-v1=95.`, { exit: 2 });
    return { endpoint: match[1] ?? '', weight: Number(match[2]) };
  }
}

export class TrafficClear extends ApiCommand {
  static override summary = 'Remove the split of a name: it is the endpoint of that name again, or nothing.';
  static override args = { model: Args.string({ required: true, description: 'the name that clients call' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(TrafficClear);
    const client = this.clientFor(flags);
    const { data } = await client.call('GET', ROUTE, trafficSplitList);
    const split = data.find(({ id, model }) => model === args.model || id === args.model);
    if (split === undefined) this.error(`${args.model} is not split. See penstock traffic show.`, { exit: 1 });
    const removed = await client.call('DELETE', `${ROUTE}/${split.id}`, trafficSplitRemoved);
    this.log(`${split.model} is split no longer.`);
    return removed;
  }
}

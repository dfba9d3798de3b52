import { Args, Flags } from '@oclif/core';
import { fleetBody, nodeOperationBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const node = Args.string({ required: true, description: 'id of the node, as `penstock nodes ls` shows it' });
const reason = Flags.string({ default: 'asked for by an operator', description: 'why, for everybody who asks later' });

export class NodesList extends ApiCommand {
  static override summary = 'List nodes with what operators want of them.';

  async run(): Promise<unknown> {
    const { flags } = await this.parse(NodesList);
    const { nodes } = await this.clientFor(flags).call('GET', '/admin/v1/fleet', fleetBody);
    this.log(table(['NODE', 'HOST', 'STATUS', 'DOMAIN', 'MARKET', 'ACCELERATORS', ''], nodes.map((one) => [
      one.nodeId, one.hostname, one.status, one.failureDomain, one.market, [...Map.groupBy(one.accelerators, (accelerator) => accelerator.type)].map(([type, all]) => `${all.length} x ${type}`).join(', '),
      one.drainReason !== null ? `drains: ${one.drainReason}` : one.cordonReason !== null ? `cordoned: ${one.cordonReason}` : one.reclaimAt !== null ? `taken back at ${one.reclaimAt}` : '',
    ])));
    return nodes;
  }
}

export class NodesCordon extends ApiCommand {
  static override summary = 'Close a node to new replicas; what runs there goes on.';
  static override args = { node };
  static override flags = { reason };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(NodesCordon);
    const body = await this.clientFor(flags).call('POST', `/admin/v1/nodes/${encodeURIComponent(args.node)}/cordon`, nodeOperationBody, { reason: flags.reason });
    this.log(`${body.node.hostname} takes no new replicas.`);
    return body.node;
  }
}

export class NodesUncordon extends ApiCommand {
  static override summary = 'Open a node to new replicas again, and end its drain.';
  static override args = { node };
  static override flags = { reason };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(NodesUncordon);
    const body = await this.clientFor(flags).call('POST', `/admin/v1/nodes/${encodeURIComponent(args.node)}/uncordon`, nodeOperationBody, { reason: flags.reason });
    this.log(`${body.node.hostname} takes replicas again.`);
    return body.node;
  }
}

export class NodesDrain extends ApiCommand {
  static override summary = 'Empty a node: each of its replicas drains once another one is ready in its place.';
  static override args = { node };
  static override flags = { reason };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(NodesDrain);
    const body = await this.clientFor(flags).call('POST', `/admin/v1/nodes/${encodeURIComponent(args.node)}/drain`, nodeOperationBody, { reason: flags.reason });
    this.log(`${body.node.hostname} drains: its replicas move, one ready before another stops. Watch it with \`penstock fleet\`.`);
    return body.node;
  }
}

export class NodesReclaim extends ApiCommand {
  static override summary = 'Say that the owner of a spot node takes it back soon, so that its replicas move before.';
  static override args = { node };
  static override flags = { reason, in: Flags.integer({ default: 120, min: 0, max: 86_400, description: 'seconds until it is gone' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(NodesReclaim);
    const body = await this.clientFor(flags).call('POST', `/admin/v1/nodes/${encodeURIComponent(args.node)}/reclaim`, nodeOperationBody, { reason: flags.reason, in_seconds: flags.in });
    this.log(`${body.node.hostname} is taken back at ${body.node.reclaimAt ?? 'an unknown time'}; its replicas move.`);
    return body.node;
  }
}

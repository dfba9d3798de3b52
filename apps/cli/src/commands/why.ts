import { Args } from '@oclif/core';
import { endpointList, fleetBody, requestExplanation } from '@penstock/contract-http';
import { ApiCommand, EXIT } from '../api-command.js';
import type { ApiClient } from '../client/api-client.js';
import { collectHistories, REPLICAS_READ_MAX } from '../why/collect-histories.js';
import { EventReader } from '../why/event-reader.js';
import { printEndpoint, printReplica } from '../why/print-story.js';
import { tellEndpoint, tellReplica } from '../why/story.js';

export class WhyReplica extends ApiCommand {
  static override summary = 'Say why a replica is where it is: what was asked, every node that was looked at, and what happened since.';
  static override examples = ['<%= config.bin %> why replica rep_01…'];
  static override args = { id: Args.string({ required: true, description: 'a replica, as `ps` lists it' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(WhyReplica);
    const client = this.clientFor(flags);
    const reader = new EventReader(client);
    const placed = (await reader.historyOf('fleet', 'replica', args.id)).find((event) => event.type === 'replica.placed.v2');
    const story = placed?.type === 'replica.placed.v2' ? tellReplica(args.id, await collectHistories(reader, placed.data.endpointId, [args.id])) : undefined;
    if (story === undefined) return this.error(`The log has no replica ${args.id}. Look for it with \`ps\` or \`events tail fleet\`.`, { exit: EXIT.failed });
    for (const line of printReplica(story, await nodeNames(client))) this.log(line);
    return story;
  }
}

export class WhyEndpoint extends ApiCommand {
  static override summary = 'Say why an endpoint has the replicas it has: decisions with what they saw, placements, and refusals.';
  static override examples = ['<%= config.bin %> why endpoint smollm2-135m-instruct', '<%= config.bin %> why endpoint ep_01…'];
  static override args = { id: Args.string({ required: true, description: 'an endpoint by id or by the name that requests carry' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(WhyEndpoint);
    const client = this.clientFor(flags);
    const { data: endpoints } = await client.call('GET', '/admin/v1/endpoints', endpointList);
    const endpointId = endpoints.find((endpoint) => endpoint.name === args.id && endpoint.status === 'active')?.endpointId ?? args.id;
    const { replicas } = await client.call('GET', '/admin/v1/fleet', fleetBody);
    const reader = new EventReader(client);
    const living = replicas.filter((replica) => replica.endpointId === endpointId).map((replica) => replica.replicaId);
    const replicaIds = [...new Set([...living, ...(await reader.replicasOf(endpointId))])].slice(0, REPLICAS_READ_MAX);
    const isId = /^[A-Za-z0-9_-]{1,128}$/.test(endpointId);
    const story = isId ? tellEndpoint(endpointId, await collectHistories(reader, endpointId, replicaIds)) : undefined;
    if (story === undefined) return this.error(`There is no endpoint ${args.id}. Look for it with \`ps\` or \`models\`.`, { exit: EXIT.failed });
    for (const line of printEndpoint(story, await nodeNames(client))) this.log(line);
    return story;
  }
}

export class WhyRequest extends ApiCommand {
  static override summary = 'Say what became of a request: the limit it met, how long it waited and for what, which replica answered.';
  static override examples = ['<%= config.bin %> why request req_01…'];
  static override args = { id: Args.string({ required: true, description: 'a request, by the x-request-id of its answer' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(WhyRequest);
    const told = await this.clientFor(flags).call('GET', `/v1/requests/${encodeURIComponent(args.id)}`, requestExplanation);
    this.log(`Request ${told.id}${told.model === null ? '' : ` to ${told.model}`}: ${told.status}, ${told.http_status}.`);
    for (const sentence of told.why) this.log(`  ${sentence}`);
    if (told.node_id !== null) this.log(`  The replica ran on node ${told.node_id}; \`why replica ${told.replica_id ?? ''}\` says why it was there.`);
    return told;
  }
}

/** Host names say more than ids; a node that is gone keeps its id. */
async function nodeNames(client: ApiClient): Promise<(nodeId: string) => string> {
  const { nodes } = await client.call('GET', '/admin/v1/fleet', fleetBody);
  const names = new Map(nodes.map((node) => [node.nodeId, node.hostname]));
  return (nodeId) => names.get(nodeId) ?? nodeId;
}

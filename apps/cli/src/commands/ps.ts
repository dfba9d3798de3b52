import { endpointList, fleetBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { formatAge, formatBytes } from '../terminal/format.js';
import { table } from '../terminal/table.js';

export class Ps extends ApiCommand {
  static override summary = 'Show endpoints, their replicas and the nodes they run on.';
  static override examples = ['<%= config.bin %> ps'];

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Ps);
    const client = this.clientFor(flags);
    const [{ data: endpoints }, fleet] = await Promise.all([client.call('GET', '/admin/v1/endpoints', endpointList), client.call('GET', '/admin/v1/fleet', fleetBody)]);
    const nowMs = Date.now();
    const endpointRows = endpoints.map((endpoint) => {
      const replicas = fleet.replicas.filter((replica) => replica.endpointId === endpoint.endpointId);
      const ready = replicas.filter((replica) => replica.phase === 'ready').length;
      return [endpoint.name, endpoint.status, `${ready} of ${replicas.length} ready`, `${endpoint.scaling.minReplicas}..${endpoint.scaling.maxReplicas}`, endpoint.engine, endpoint.endpointId];
    });
    const nameOf = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint.name]));
    const replicaRows = fleet.replicas.map((replica) => [replica.replicaId, nameOf.get(replica.endpointId) ?? replica.endpointId, replica.phase, formatAge(replica.phaseSince, nowMs), replica.nodeId, replica.url ?? '-', replica.reason ?? '']);
    const nodeRows = fleet.nodes.map((node) => [node.nodeId, node.hostname, node.status, node.accelerators.map((accelerator) => accelerator.type).join('+'), formatBytes(node.memoryBytes), node.engines.map((engine) => engine.kind).join(' ')]);
    this.log(table(['ENDPOINT', 'STATUS', 'REPLICAS', 'RANGE', 'ENGINE', 'ID'], endpointRows));
    this.log(`\n${table(['REPLICA', 'ENDPOINT', 'PHASE', 'FOR', 'NODE', 'URL', ''], replicaRows)}`);
    this.log(`\n${table(['NODE', 'HOST', 'STATUS', 'ACCELERATORS', 'MEMORY', 'ENGINES'], nodeRows)}`);
    return { endpoints, ...fleet };
  }
}

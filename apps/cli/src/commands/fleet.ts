import { endpointList, fleetBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { describeFleet } from '../fleet/describe-fleet.js';
import { drawFleet } from '../fleet/draw-fleet.js';

const WIDTH_DEFAULT = 100;

export class Fleet extends ApiCommand {
  static override summary = 'Show nodes, their GPUs and slices drawn to scale, and what holds them.';
  static override examples = ['<%= config.bin %> fleet', '<%= config.bin %> fleet --json'];

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Fleet);
    const client = this.clientFor(flags);
    const [{ data: endpoints }, fleet] = await Promise.all([client.call('GET', '/admin/v1/endpoints', endpointList), client.call('GET', '/admin/v1/fleet', fleetBody)]);
    const described = describeFleet(fleet, endpoints);
    for (const line of drawFleet(described, process.stdout.columns ?? WIDTH_DEFAULT)) this.log(line);
    return described;
  }
}

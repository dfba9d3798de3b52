import { eventList, fleetBody } from '@penstock/contract-http';
import type { NodeView, ReplicaView } from '@penstock/contract-commands';
import type { PlacementRefusedV2 } from '@penstock/contract-events';
import { until } from '../../platform/eventually.js';
import type { Installation } from '../../platform/installation.js';

const WAIT_MS = 60_000;

export interface Demand {
  readonly name: string;
  readonly gpuType: string;
  readonly gpuCount?: number;
  readonly replicas: number;
}

/** The platform as an operator sees it, through the admin API. */
export class FleetClient {
  constructor(private readonly installation: Installation) {}

  async deploy({ name, gpuType, gpuCount, replicas }: Demand): Promise<string> {
    const answer = (await this.installation.admin('POST', '/v1/models/deploy', {
      model_name: name, model_artifact: 'sim://', framework: 'engine-sim',
      hardware: { gpu_type: gpuType, gpu_count: gpuCount ?? 1, min_replicas: replicas, max_replicas: replicas },
    })) as { endpoint_id: string };
    return answer.endpoint_id;
  }

  async retire(endpointId: string): Promise<void> {
    await this.installation.admin('DELETE', `/admin/v1/endpoints/${endpointId}`);
  }

  async nodes(): Promise<readonly NodeView[]> {
    return fleetBody.parse(await this.installation.admin('GET', '/admin/v1/fleet')).nodes.filter((node) => node.nodeId.startsWith('node_k8s_'));
  }

  async replicas(endpointId: string): Promise<readonly ReplicaView[]> {
    return fleetBody.parse(await this.installation.admin('GET', '/admin/v1/fleet')).replicas.filter((replica) => replica.endpointId === endpointId);
  }

  /** Waits until exactly so many replicas are ready and no others live. */
  ready(endpointId: string, count: number, waitMs = WAIT_MS): Promise<readonly ReplicaView[]> {
    return until(`${count} ready replicas of ${endpointId}`, waitMs, async () => {
      const replicas = await this.replicas(endpointId);
      return replicas.length === count && replicas.every((replica) => replica.phase === 'ready') ? replicas : undefined;
    });
  }

  async refusal(endpointId: string): Promise<PlacementRefusedV2> {
    return until('a refused placement', WAIT_MS, async () => {
      const { data } = eventList.parse(await this.installation.admin('GET', `/admin/v1/events?context=fleet&aggregate=endpoint-placement&id=${endpointId}`));
      return data.at(-1)?.data as PlacementRefusedV2 | undefined;
    });
  }

  async typesOf(aggregate: string, id: string): Promise<readonly string[]> {
    return eventList.parse(await this.installation.admin('GET', `/admin/v1/events?context=fleet&aggregate=${aggregate}&id=${id}&limit=1000`)).data.map((event) => event.type);
  }

  /** A figure that the driver counts, as its metrics tell it. */
  async driverCount(of: string): Promise<number> {
    const text = await (await fetch(`${this.installation.service('agent').url}/metrics`)).text();
    return Number(new RegExp(`^penstock_replica_driver_count\\{[^}]*of="${of}"[^}]*\\} (\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
  }
}

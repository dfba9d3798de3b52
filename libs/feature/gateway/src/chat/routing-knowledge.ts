import { kvEventsPortOf, servingPaceOf } from '@penstock/domain-catalog';
import { AdapterBeliefs, hearAdapters, PromptExchange, replicaPaceOf, RoutingMemories } from '@penstock/domain-routing';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { CacheWatch } from './cache-watch.js';

/** What a gateway knows of replicas by the prompts that were sent to them, its own and those that others tell of, and of their adapters. */
export interface RoutingKnowledge {
  readonly memories: RoutingMemories;
  readonly adapters: AdapterBeliefs;
  close(): Promise<void>;
}

export async function openRoutingKnowledge(gatewayId: string, views: GatewayViews, ports: GatewayPorts): Promise<RoutingKnowledge> {
  const memories = new RoutingMemories((endpointId) => replicaPaceOf(servingPaceOf(views.catalog.state().endpoints.get(endpointId))));
  const adapters = new AdapterBeliefs();
  const isServing = (replicaId: string): boolean => views.fleet.state().replicas.get(replicaId)?.phase === 'ready';
  const stopForgetting = views.fleet.onChange(() => {
    memories.keepOnly(isServing);
    adapters.keepOnly(isServing);
  });
  const exchange = new PromptExchange(gatewayId, memories.news, (endpointId) => memories.of(endpointId), ports);
  await exchange.start();
  const reports = await hearAdapters(ports.signals, adapters);
  const caches = ports.kvEvents === undefined ? undefined : new CacheWatch(ports.kvEvents, { memories, fleet: views.fleet, timers: ports.timers, kvEventsPortOf: (endpointId) => kvEventsPortOf(views.catalog.state().endpoints.get(endpointId)) });
  return {
    memories,
    adapters,
    close: async () => {
      stopForgetting();
      caches?.close();
      await Promise.all([exchange.close(), reports.close()]);
    },
  };
}

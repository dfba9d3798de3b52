import { catalogProjection, type CatalogState } from '@penstock/domain-catalog';
import { ReconcileLoop } from '@penstock/feature-shell';
import type { LiveProjection } from '@penstock/kernel';
import { CatalogReader } from './catalog-reader.js';
import { EndpointDesk } from './endpoint-desk.js';
import { InspectionReactor } from './inspection-reactor.js';
import { ModelVersionDesk } from './model-version-desk.js';
import type { RegistryConfig } from './registry-config.js';
import type { RegistryPorts } from './registry-ports.js';
import { TrafficDesk } from './traffic-desk.js';

export interface RunningCatalog {
  readonly catalog: LiveProjection<CatalogState>;
  readonly modelVersions: ModelVersionDesk;
  readonly endpoints: EndpointDesk;
  readonly traffic: TrafficDesk;
  readonly reader: CatalogReader;
  /** Begins no further reading; one that is under way is given up and done again by the next start. */
  stopReading(): Promise<void>;
  close(): Promise<void>;
}

/** Everything of the registry except its servers. */
export async function runCatalog(config: RegistryConfig, ports: RegistryPorts): Promise<RunningCatalog> {
  const logger = ports.logger.child({ service: 'registry' });
  const { log, clock, ids, inspector } = ports;
  const catalog = await ports.follow(catalogProjection);
  const reactor = new InspectionReactor({ log, clock, ids, logger, inspector, catalog });
  const loop = new ReconcileLoop({ timers: ports.timers, logger, intervalMs: config.RECONCILE_INTERVAL_MS, reconcile: reactor.reconcile });
  const stopListening = catalog.onChange(loop.trigger);
  loop.start();
  const stopReading = async (): Promise<void> => {
    stopListening();
    reactor.close();
    await loop.close();
  };
  return {
    catalog,
    modelVersions: new ModelVersionDesk({ log, clock, ids }),
    endpoints: new EndpointDesk({ log, clock, ids, catalog }),
    traffic: new TrafficDesk({ log, clock, ids, catalog }),
    reader: new CatalogReader(catalog, ports.queries, logger),
    stopReading,
    close: async () => {
      await stopReading();
      await catalog.close();
    },
  };
}

import type { CatalogState } from '@penstock/domain-catalog';
import type { LiveProjection } from '@penstock/kernel';
import { Gauge, type Registry } from 'prom-client';

/** Counts of the catalogue as this process knows it, read when they are asked for. */
export function registerCatalogMetrics(registry: Registry, catalog: LiveProjection<CatalogState>): void {
  const statuses = ['submitted', 'registered', 'rejected'] as const;
  new Gauge({
    name: 'penstock_model_versions',
    help: 'Model versions by status.',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      const versions = [...catalog.state().modelVersions.values()];
      for (const status of statuses) this.set({ status }, versions.filter((version) => version.status === status).length);
    },
  });
  new Gauge({
    name: 'penstock_endpoints_active',
    help: 'Endpoints that are deployed and not retired.',
    registers: [registry],
    collect() {
      this.set(catalog.state().endpointIdByName.size);
    },
  });
}

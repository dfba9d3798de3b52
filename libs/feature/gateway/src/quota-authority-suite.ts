import { syncQuota } from '@penstock/contract-commands';
import { QuotaBucket } from '@penstock/domain-access';
import type { LocalCommandClient } from '@penstock/testing-kit';

/** Serves the limits of every organisation, as a router does. */
export function serveQuota(commands: LocalCommandClient): void {
  const buckets = new Map<string, QuotaBucket>();
  commands.serve(syncQuota, ({ gatewayId, organisationId, buckets: reports }) => ({
    kind: 'ok',
    value: {
      ownerId: 'inst_router', isLearning: false,
      grants: reports.map(({ key, kind, limit, ...report }) => {
        const name = `${organisationId} ${key}`;
        const bucket = buckets.get(name) ?? new QuotaBucket(kind, limit);
        buckets.set(name, bucket);
        return { key, ...bucket.sync(gatewayId, limit, report, Date.now()) };
      }),
    },
  }));
}

import { catalogProjection } from '@penstock/domain-catalog';
import { fleetProjection } from '@penstock/domain-lifecycle';
import { AdapterBeliefs, hearAdapters, PromptExchange, type AdmissionState } from '@penstock/domain-routing';
import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { AdmissionService } from './admission-service.js';
import { CircuitJournal } from './circuit-journal.js';
import { ColdStarts } from './cold-starts.js';
import { Desks } from './desks.js';
import { LOAD_INTERVAL_MS, reportLoad } from './load-reporter.js';
import { OwnerLink } from './owner-link.js';
import { QuotaAuthority } from './quota/quota-authority.js';
import type { RouterConfig } from './router-config.js';
import { RouterMembers } from './router-members.js';
import { RouterMetrics } from './router-metrics.js';
import type { RouterPorts } from './router-ports.js';
import { RouterModule } from './router.module.js';
import { TokenProbes } from './token-probes.js';

/** How often leases and waiting times are looked at. */
export const TICK_MS = 100;

/** Starts a router: it admits requests to endpoints, and shares the endpoints with the other routers that it hears. */
export async function startRouter(config: RouterConfig, ports: RouterPorts): Promise<RunningService> {
  const instanceId = ports.ids.next('inst');
  const logger = ports.logger.child({ service: 'router', instanceId });
  const [catalog, fleet] = await Promise.all([ports.follow(catalogProjection), ports.follow(fleetProjection)]);
  const registry = createMetrics('router');
  const members = new RouterMembers(instanceId, ports);
  const metrics = new RouterMetrics(registry, (): Iterable<AdmissionState> => desks.states());
  const coldStarts = new ColdStarts({ commands: ports.commands, timers: ports.timers, logger }, metrics);
  const journal = new CircuitJournal({ clock: ports.clock, ids: ports.ids, log: ports.log, logger });
  const adapters = new AdapterBeliefs();
  const desks = new Desks({
    desk: {
      adapters,
      clock: ports.clock,
      metrics,
      onWake: (desk, waiting) => coldStarts.wake(desk, waiting),
      onCircuit: (effect) => journal.record(effect),
      onRecall: (endpointId) => ports.signals.publish(`tele.recall.${endpointId}`, { endpointId }),
    },
    catalog, fleet, members, coldStarts,
    leaseTtlMs: config.ROUTER_LEASE_TTL_MS,
    learningMs: config.ROUTER_LEARNING_MS,
  });
  const probes = new TokenProbes({ probe: ports.probe, metrics, logger });
  const exchange = new PromptExchange(instanceId, desks.memories.news, (endpointId) => desks.memories.find(endpointId), ports);
  await exchange.start();
  const adapterReports = await hearAdapters(ports.signals, adapters);
  const link = new OwnerLink(ports.commands, members);
  const admissions = new AdmissionService({ clock: ports.clock, ids: ports.ids, timers: ports.timers, logger, catalog, desks, members, link, handOverMs: config.DRAIN_TIMEOUT_MS / 2 });
  const quotas = new QuotaAuthority({ clock: ports.clock, timers: ports.timers, members, link });
  members.onChange(() => {
    logger.info({ others: members.others() }, 'the routers changed');
    admissions.handOver().catch((error: unknown) => logger.error({ err: error }, 'endpoints were not handed over'));
  });
  const stopListening = [catalog.onChange(() => desks.sync()), fleet.onChange(() => {
    adapters.keepOnly((replicaId) => fleet.state().replicas.get(replicaId)?.phase === 'ready');
    desks.sync();
  })];
  const stopTimers = [
    ports.timers.every(TICK_MS, () => {
      desks.tick();
      probes.look(desks.all());
    }),
    ports.timers.every(LOAD_INTERVAL_MS, () => reportLoad({ clock: ports.clock, signals: ports.signals, catalog, fleet, desks, members })),
  ];
  const service = await startService({
    name: 'router',
    module: RouterModule.with(instanceId, admissions, quotas, logger),
    metrics: registry,
    onDrain: () => admissions.drain(),
    onClose: async () => {
      for (const stop of [...stopTimers, ...stopListening]) stop();
      admissions.close();
      quotas.close();
      coldStarts.close();
      await Promise.all([members.close(), exchange.close(), adapterReports.close(), catalog.close(), fleet.close()]);
    },
  }, config, ports);
  // Announced only now: another instance may forward to this one from here on.
  await members.start();
  return service;
}

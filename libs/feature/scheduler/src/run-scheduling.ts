import { catalogProjection } from '@penstock/domain-catalog';
import { fleetProjection, type FleetState } from '@penstock/domain-lifecycle';
import { scalingProjection } from '@penstock/domain-scaling';
import { commitmentProjection, tenantTiersProjection, type CommitmentBook } from '@penstock/domain-placement';
import { ReconcileLoop } from '@penstock/feature-shell';
import type { LiveProjection } from '@penstock/kernel';
import { CommitmentWriter } from './commitments/commitment-writer.js';
import { PlanDesk } from './commitments/plan-desk.js';
import { PromiseKeeper } from './commitments/promise-keeper.js';
import { ReservationDesk } from './commitments/reservation-desk.js';
import type { SchedulerConfig } from './config.js';
import { FleetReconciler } from './fleet-reconciler.js';
import { FleetWriter } from './fleet-writer.js';
import { MigDesk } from './mig-desk.js';
import { PlanWatch } from './plan-watch.js';
import { NodeWatch } from './node-watch.js';
import { PeerWatch } from './peer-watch.js';
import type { SchedulerPorts } from './ports.js';

/** Who answers questions about promises and about what would be. */
export interface SchedulerDesks {
  readonly reservations: ReservationDesk;
  readonly plans: PlanDesk;
}

export interface RunningScheduling {
  readonly fleet: LiveProjection<FleetState>;
  readonly book: LiveProjection<CommitmentBook>;
  readonly desks: SchedulerDesks;
  readonly writer: FleetWriter;
  readonly plans: PlanWatch;
  /** Makes no new decision from here on; waits for the one under way. */
  stopDeciding(): Promise<void>;
  close(): Promise<void>;
}

/** Everything of the scheduler except its servers: follows, watches, reconciles. */
export async function runScheduling(config: SchedulerConfig, ports: SchedulerPorts): Promise<RunningScheduling> {
  const logger = ports.logger.child({ service: 'scheduler' });
  const fleet = await ports.follow(fleetProjection);
  const catalog = await ports.follow(catalogProjection);
  const scaling = await ports.follow(scalingProjection);
  const book = await ports.follow(commitmentProjection);
  const tiers = await ports.follow(tenantTiersProjection);
  const nodes = new NodeWatch(ports.clock, ports.signals);
  const peers = new PeerWatch(ports.ids.next('inst'), ports.clock, ports.signals);
  const promisesWriter = new CommitmentWriter(ports.log, book, ports.clock, ports.ids);
  const promises = new PromiseKeeper({ book, catalog, writer: promisesWriter, clock: ports.clock, ids: ports.ids, logger });
  const writer = new FleetWriter(ports.log, fleet, ports.clock, ports.ids);
  const plans = new PlanWatch({ config, optimiser: ports.optimiser, clock: ports.clock, logger });
  const geometries = new MigDesk(writer, logger);
  const reconciler = new FleetReconciler({ config, fleet, catalog, scaling, book, tiers, promises, writer, nodes, peers, plans, geometries, clock: ports.clock, ids: ports.ids, logger });
  const loop = new ReconcileLoop({ timers: ports.timers, logger, intervalMs: config.RECONCILE_INTERVAL_MS, reconcile: reconciler.reconcile });
  const desks: SchedulerDesks = {
    reservations: new ReservationDesk({ fleet, catalog, book, writer: promisesWriter, clock: ports.clock, ids: ports.ids }),
    plans: new PlanDesk({ fleet, catalog, book, clock: ports.clock }),
  };
  await nodes.start();
  await peers.start();
  const stops = [fleet, catalog, scaling, book, tiers].map((projection) => projection.onChange(loop.trigger));
  loop.start();
  return {
    fleet,
    book,
    desks,
    writer,
    plans,
    stopDeciding: () => loop.close(),
    close: async () => {
      for (const stop of stops) stop();
      await loop.close();
      await Promise.all([nodes.close(), peers.close(), fleet.close(), catalog.close(), scaling.close(), book.close(), tiers.close()]);
    },
  };
}

import { catalogProjection } from '@penstock/domain-catalog';
import { fleetProjection } from '@penstock/domain-lifecycle';
import { scalingProjection, type ScalingState } from '@penstock/domain-scaling';
import { ReconcileLoop } from '@penstock/feature-shell';
import type { LiveProjection } from '@penstock/kernel';
import type { AutoscalerConfig } from './config.js';
import { LoadWatch } from './load-watch.js';
import type { AutoscalerPorts } from './ports.js';
import { ScaleEvaluator } from './scale-evaluator.js';
import { ScaleWriter } from './scale-writer.js';
import { WakeHandler } from './wake-handler.js';

export interface RunningAutoscaling {
  readonly scaling: LiveProjection<ScalingState>;
  readonly wakes: WakeHandler;
  /** Makes no new decision from here on, except to wake; waits for the one under way. */
  stopDeciding(): Promise<void>;
  close(): Promise<void>;
}

/** Everything of the autoscaler except its servers: follows, listens, decides. */
export async function runAutoscaling(config: AutoscalerConfig, ports: AutoscalerPorts): Promise<RunningAutoscaling> {
  const logger = ports.logger.child({ service: 'autoscaler' });
  const catalog = await ports.follow(catalogProjection);
  const scaling = await ports.follow(scalingProjection);
  const fleet = await ports.follow(fleetProjection);
  const loads = new LoadWatch(ports.clock, ports.signals, config.LOAD_FRESH_MS);
  const writer = new ScaleWriter(ports.log, ports.clock, ports.ids);
  const evaluator = new ScaleEvaluator({ catalog, fleet, scaling, loads, writer, clock: ports.clock, logger });
  const loop = new ReconcileLoop({ timers: ports.timers, logger, intervalMs: config.EVALUATE_INTERVAL_MS, reconcile: evaluator.evaluate });
  await loads.start();
  const stops = [catalog, scaling, fleet].map((projection) => projection.onChange(loop.trigger));
  loop.start();
  return {
    scaling,
    wakes: new WakeHandler(catalog, writer),
    stopDeciding: () => loop.close(),
    close: async () => {
      for (const stop of stops) stop();
      await loop.close();
      await Promise.all([loads.close(), catalog.close(), scaling.close(), fleet.close()]);
    },
  };
}

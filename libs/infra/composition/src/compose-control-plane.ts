import { autoscalerConfig, startAutoscaler } from '@penstock/feature-autoscaler';
import { routerConfig, startRouter } from '@penstock/feature-router';
import { schedulerConfig, startScheduler } from '@penstock/feature-scheduler';
import type { RunningService } from '@penstock/feature-shell';
import { HttpEngineProbe } from '@penstock/infra-engines';
import { HighsOptimiser } from '@penstock/infra-optimiser';
import { fleetTableProjection, PostgresFleetQueries, PostgresScalingQueries, scalingTableProjection } from '@penstock/infra-postgres';
import { openPlatform, type Platform } from './platform.js';
import { openDatabase, type Database } from './projections.js';
import { createServiceLogger } from './service-logger.js';
import { readSettings, type Environment } from './settings.js';
import { closingOnFailure, withClosers } from './with-closers.js';

/** The router as a service: it keeps its state in memory and needs no database. */
export async function composeRouter(environment: Environment): Promise<RunningService> {
  const platform = await openPlatform('router', environment);
  const closers = [() => platform.close()];
  return closingOnFailure(closers, async () => withClosers(await startRouter(readSettings(routerConfig, environment), { ...platform.ports, probe: new HttpEngineProbe() }), closers));
}

export function composeScheduler(environment: Environment): Promise<RunningService> {
  return withDatabase('scheduler', environment, (platform, database) =>
    startScheduler(readSettings(schedulerConfig, environment), {
      ...platform.ports,
      queries: new PostgresFleetQueries(database.connection),
      optimiser: new HighsOptimiser(),
      projections: [database.project(platform, fleetTableProjection)],
    }),
  );
}

export function composeAutoscaler(environment: Environment): Promise<RunningService> {
  return withDatabase('autoscaler', environment, (platform, database) =>
    startAutoscaler(readSettings(autoscalerConfig, environment), {
      ...platform.ports,
      queries: new PostgresScalingQueries(database.connection),
      projections: [database.project(platform, scalingTableProjection)],
    }),
  );
}

/** Opens platform and database for one service, starts it, and closes all in the right order when it stops or fails to start. */
export async function withDatabase(name: string, environment: Environment, start: (platform: Platform, database: Database) => Promise<RunningService>): Promise<RunningService> {
  const database = await openDatabase(environment, createServiceLogger(name, environment));
  const closers = [() => database.close()];
  return closingOnFailure(closers, async () => {
    const platform = await openPlatform(name, environment, { probes: [database.probe] });
    closers.push(() => platform.close());
    return withClosers(await start(platform, database), closers);
  });
}

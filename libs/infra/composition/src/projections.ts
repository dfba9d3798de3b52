import type { HealthProbe } from '@penstock/feature-shell';
import type { Logger, ProjectionControl } from '@penstock/kernel';
import { connectPostgres, PostgresProjector, type PostgresConnection, type TableProjection } from '@penstock/infra-postgres';
import { z } from 'zod';
import type { Platform } from './platform.js';
import { readSettings, type Environment } from './settings.js';

const databaseConfig = z.object({
  /** `postgres://user:password@host:port/database`. */
  DATABASE_URL: z.string().min(1),
});

/** One service's database with its projections. */
export interface Database {
  readonly connection: PostgresConnection;
  readonly probe: HealthProbe;
  /** Starts a projection of this service; an event it cannot apply goes to the dead letters. */
  project(platform: Platform, projection: TableProjection): ProjectionControl;
  close(): Promise<void>;
}

/** Prepares the pool; a database that is down keeps no service from starting. */
export async function openDatabase(environment: Environment, logger: Logger): Promise<Database> {
  const { DATABASE_URL } = readSettings(databaseConfig, environment);
  const connection = await connectPostgres(DATABASE_URL, { logger });
  const running: ProjectionControl[] = [];
  return {
    connection,
    probe: { name: 'postgres', check: () => connection.probe() },
    project: (platform, projection) => {
      const control = PostgresProjector.start({
        connection,
        log: platform.ports.log,
        projection,
        logger: platform.logger,
        onPoison: ({ event, reason }) => platform.deadLetters.file(event, `${platform.service}-${projection.name}`, reason),
      });
      running.push(control);
      return control;
    },
    close: async () => {
      await Promise.all(running.map((control) => control.close()));
      await connection.close();
    },
  };
}

import type { Clock, CommandClient, EventLog, IdSource, LiveProjection, Logger, Projection, ProjectionControl, Signals, Timers } from '@penstock/kernel';
import type { MicroserviceOptions } from '@nestjs/microservices';

/** What the readiness of a service depends on. */
export interface HealthProbe {
  readonly name: string;
  /** False for what the service does its work without, if worse: it is told, and callers still come. Left out, the service is not ready without it. */
  readonly isVital?: boolean | undefined;
  /** Resolves to undefined when well, else to what is wrong. Must answer within a second. */
  check(): Promise<string | undefined>;
}

/** The adapters every service gets from its app. */
export interface ServicePorts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly log: EventLog;
  readonly commands: CommandClient;
  readonly signals: Signals;
  /** Starts an in-memory projection from its newest snapshot; poison events go to the dead letters. */
  follow<State>(projection: Projection<State>): Promise<LiveProjection<State>>;
  /** Nest's NATS transporter, in the queue group of this service. Left out where the service serves no commands. */
  readonly commandTransport?: MicroserviceOptions | undefined;
  /** Consumers of the event log (our JetStream strategy), one per durable. */
  readonly eventTransports?: readonly MicroserviceOptions[] | undefined;
  readonly probes?: readonly HealthProbe[] | undefined;
}

/** Ports of a service that also keeps projections in a database. */
export interface ProjectionPorts {
  readonly projections: readonly ProjectionControl[];
}

import type { StreamName } from '@penstock/contract-events';
import type { EventLog, Logger, Positions, ProjectionControl, ProjectionVerification } from '@penstock/kernel';
import { describeFailure } from '../connection/classify-failure.js';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { readCheckpoints } from './checkpoints.js';
import { PositionWaiters } from './position-waiters.js';
import { prepareProjection } from './prepare-projection.js';
import { rebuildProjection, verifyProjection } from './rebuild-projection.js';
import { waitBeforeRetry } from './retry-delay.js';
import { StreamApplier, type ApplierEnd, type PoisonHandler } from './stream-applier.js';
import type { TableProjection } from './table-projection.js';

/** A projection that lags further behind is compared where it stands; the positions in the result say where that is. */
const CATCH_UP_WAIT_MS = 10_000;

export interface ProjectorOptions {
  readonly connection: PostgresConnection;
  readonly log: EventLog;
  readonly projection: TableProjection;
  readonly logger: Logger;
  /** Told of each event that the projection leaves out, before it goes on; a rejection is retried. */
  readonly onPoison?: PoisonHandler | undefined;
}

/**
 * Keeps a table projection up to date. Starts in the background and waits for database and event log as often and as long as
 * they are away. Any number of projectors may run for one projection: the checkpoint lets each event through once.
 */
export class PostgresProjector implements ProjectionControl {
  readonly name: string;
  private readonly closing = new AbortController();
  private readonly waiters = new PositionWaiters();
  private readonly applied = new Map<string, number>();
  private readonly running: Promise<void>;
  private problem: string | undefined = 'not prepared yet';

  private constructor(private readonly options: ProjectorOptions) {
    this.name = options.projection.name;
    this.running = this.run();
  }

  static start(options: ProjectorOptions): PostgresProjector {
    return new PostgresProjector(options);
  }

  /** Undefined while it follows the log, else what is wrong. For readiness checks. */
  check(): Promise<string | undefined> {
    return Promise.resolve(this.problem);
  }

  async positions(): Promise<Positions> {
    const checkpoints = await this.options.connection.query((manager) => readCheckpoints(manager, this.name));
    return Object.fromEntries([...checkpoints].map(([stream, checkpoint]) => [stream, checkpoint.lastSequence]));
  }

  async waitFor(stream: StreamName, sequence: number, timeoutMs: number): Promise<void> {
    if ((this.applied.get(stream) ?? 0) < sequence) await this.waiters.wait(stream, sequence, timeoutMs);
  }

  /** First lets the live tables catch up with what stands in the log now, so that a projection that lags is not found empty and well. */
  async verify(): Promise<ProjectionVerification> {
    const { log, projection } = this.options;
    await Promise.all(projection.streams.map(async (stream) => this.waitFor(stream, (await log.bounds(stream)).lastSequence, CATCH_UP_WAIT_MS))).catch(() => undefined);
    return verifyProjection(this.options.connection, this.options.log, this.options.projection);
  }

  rebuild(): Promise<ProjectionVerification> {
    return rebuildProjection(this.options.connection, this.options.log, this.options.projection);
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.waiters.rejectAll(new Error(`Projection ${this.name} was closed.`));
    await this.running;
  }

  private async run(): Promise<void> {
    await Promise.all(this.options.projection.streams.map((stream) => this.follow(stream)));
  }

  /** Follows one stream from its checkpoint, and again from there whenever what it holds in memory no longer fits the database. */
  private async follow(stream: StreamName): Promise<void> {
    for (;;) {
      const start = await this.untilDone('prepare', () => this.startingPoint(stream));
      if (start === undefined) return;
      if (start.kind === 'replaced') return this.giveWay(start.version);
      const end = await this.applyFrom(stream, start.position);
      if (end === undefined || end.kind === 'closed') return;
      if (end.kind === 'replaced') return this.giveWay(end.version);
      this.options.logger.warn({ projection: this.name, stream }, 'the checkpoint went back; reading the log again from there');
      await waitBeforeRetry(1, this.closing.signal);
    }
  }

  private async startingPoint(stream: StreamName): Promise<{ readonly kind: 'ready'; readonly position: number } | { readonly kind: 'replaced'; readonly version: number }> {
    const { connection, log, projection } = this.options;
    const preparation = await prepareProjection(connection, log, projection);
    if (preparation.kind === 'replaced') return preparation;
    const checkpoints = await connection.transaction((manager) => readCheckpoints(manager, projection.name));
    return { kind: 'ready', position: checkpoints.get(stream)?.lastSequence ?? 0 };
  }

  private async applyFrom(stream: StreamName, position: number): Promise<ApplierEnd | undefined> {
    const applier = new StreamApplier({
      ...this.options,
      stream,
      position,
      signal: this.closing.signal,
      onApplied: (reached) => this.advance(stream, reached),
      onProblem: (problem) => {
        this.problem = problem;
      },
    });
    this.advance(stream, position);
    const subscription = await this.untilDone('follow the log', () => this.options.log.tail(stream, position + 1, (events, throughSequence) => applier.apply(events, throughSequence)));
    if (subscription === undefined) return undefined;
    this.problem = undefined;
    const end = await applier.ended;
    await subscription.close();
    return end;
  }

  private advance(stream: string, position: number): void {
    this.applied.set(stream, position);
    this.waiters.advance(stream, position);
  }

  private giveWay(version: number): void {
    this.problem = `version ${version} of this projection took over; this process has version ${this.options.projection.version}`;
    this.options.logger.error({ projection: this.name, version }, 'projection was taken over by a newer version; start the newer release of this service');
  }

  /** Tries until it works; undefined once the projector closes. */
  private async untilDone<Result>(step: string, attempt: () => Promise<Result>): Promise<Result | undefined> {
    for (let failures = 1; !this.closing.signal.aborted; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        this.problem = `could not ${step}: ${describeFailure(error)}`;
        this.options.logger.warn({ projection: this.name, err: error, failures }, `projection could not ${step}; trying again`);
        await waitBeforeRetry(failures, this.closing.signal);
      }
    }
    return undefined;
  }
}

import { fleetProjection, type ReplicaDriver } from '@penstock/domain-lifecycle';
import type { EngineProbe } from '@penstock/domain-serving';
import { replicaDriverConfig, runReplicaDriver } from '@penstock/feature-replica-driver';
import { runScheduling, schedulerConfig } from '@penstock/feature-scheduler';
import type { ServicePorts } from '@penstock/feature-shell';
import { followProjection, silentLogger, type Clock, type IdSource, type Logger, type Projection, type StoredSnapshot, type Timers } from '@penstock/kernel';
import { LocalCommandClient, MemorySnapshotStore } from '@penstock/testing-kit';
import type { VirtualTime } from '@penstock/testing-simulator';
import { LogLink } from './log-link.js';
import type { SharedLog } from './shared-log.js';
import type { SignalLink, SignalNetwork } from './signal-network.js';

/** Time-outs so short that a run shows each of them. */
const schedulerSettings = schedulerConfig.parse({
  HEARTBEAT_TIMEOUT_MS: 6_000, PLACED_TIMEOUT_MS: 10_000, PULL_STALL_TIMEOUT_MS: 20_000, LOAD_TIMEOUT_MS: 20_000, WARM_UP_TIMEOUT_MS: 10_000, DRAIN_STUCK_TIMEOUT_MS: 20_000,
});
const driverSettings = replicaDriverConfig.parse({ NODE_GRACE_MS: 3_000, VANISHED_GRACE_MS: 3_000, BLOCKED_GRACE_MS: 10_000, WARM_UP_TIMEOUT_MS: 5_000, REPLICA_DRAIN_TIMEOUT_MS: 5_000 });

/** Snapshots this often, so that restarts start from one. */
const SNAPSHOT_EVENTS = 40;
const RESTART_MS = 1_000;
const SKEW_MS_MAX = 1_500;

export interface ProcessWorld {
  readonly time: VirtualTime;
  readonly log: SharedLog;
  readonly network: SignalNetwork;
  readonly ids: IdSource;
  readonly random: () => number;
}

export type ProcessRole = { readonly kind: 'scheduler'; readonly side: number | undefined } | { readonly kind: 'driver'; readonly driver: () => ReplicaDriver; readonly probe: EngineProbe };

/** A scheduler or a driver as a process: it dies with everything it was about to do, and starts again from snapshots and the log. */
export class PlatformProcess {
  /** Crashes that really happened: which kind of process died in which append of its life, and whether that was stored. */
  readonly crashes: string[] = [];
  /** Errors that no fault explains: faults of the code itself. */
  readonly bugs: Error[] = [];
  private readonly logger: Logger = { ...silentLogger, child: () => this.logger, warn: (fields) => this.note(fields['err']), error: (fields) => this.note(fields['err']) };
  private readonly snapshots = new MemorySnapshotStore();
  private readonly clock: Clock;
  private link: LogLink | undefined;
  private signals: SignalLink | undefined;
  private readonly repeating = new Set<() => void>();
  private life = 0;
  private downMs = RESTART_MS;
  private isCut = false;
  private isSlow = false;

  constructor(private readonly world: ProcessWorld, private readonly role: ProcessRole) {
    const skewMs = Math.round((world.random() - 0.5) * 2 * SKEW_MS_MAX);
    this.clock = { now: () => world.time.now() + skewMs };
  }

  start(): void {
    this.life += 1;
    const life = this.life;
    const { world } = this;
    const timers: Timers = {
      after: (delayMs, call) => world.time.after(delayMs, () => (life === this.life ? call() : undefined)),
      every: (intervalMs, call) => {
        const cancel = world.time.every(intervalMs, call);
        this.repeating.add(cancel);
        return () => {
          this.repeating.delete(cancel);
          cancel();
        };
      },
    };
    const link = new LogLink(world.log, timers, world.random, ({ atAppend, isStored }) => this.crashed(`${this.role.kind} ${atAppend} ${isStored ? 'after' : 'before'}`));
    const signals = world.network.link(this.role.kind === 'scheduler' ? this.role.side : undefined);
    Object.assign(this, { link, signals });
    this.applyTrouble();
    // What cannot start, since its link is cut, is started again by whoever watches over it.
    this.run({ clock: this.clock, timers, ids: world.ids, logger: this.logger, log: link, signals, commands: new LocalCommandClient(), follow: (projection) => this.follow(link, projection) })
      .catch((error: unknown) => {
        this.note(error);
        if (life === this.life) this.kill(RESTART_MS);
      });
  }

  /** Dies now and starts again later. */
  kill(forMs: number): void {
    this.life += 1;
    for (const cancel of this.repeating) cancel();
    this.repeating.clear();
    this.link?.die();
    if (this.signals !== undefined) this.world.network.remove(this.signals);
    const life = this.life;
    if (forMs === Number.POSITIVE_INFINITY) return;
    this.world.time.after(forMs, () => {
      if (life === this.life) this.start();
    });
  }

  /** Dies for good, with the machine it ran on. */
  end(): void {
    this.kill(Number.POSITIVE_INFINITY);
  }

  /** Dies in its n-th append from now, which is stored or not, and stays down for a while. */
  crashIn(appends: number, isStored: boolean, downMs: number): void {
    this.downMs = downMs;
    if (this.link !== undefined) this.link.crash = { atAppend: this.link.appends + appends, isStored };
  }

  setCut(isCut: boolean): void {
    this.isCut = isCut;
    this.applyTrouble();
  }

  setSlow(isSlow: boolean): void {
    this.isSlow = isSlow;
    this.applyTrouble();
  }

  /** No further crash is due. */
  calm(): void {
    if (this.link !== undefined) this.link.crash = undefined;
    this.setCut(false);
    this.setSlow(false);
  }

  /** The newest snapshot of the fleet, as a restart would find it. */
  fleetSnapshot(): Promise<StoredSnapshot | undefined> {
    return this.snapshots.load(fleetProjection.name);
  }

  private note(error: unknown): void {
    if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError || (error instanceof Error && error.name === 'InvariantError')) this.bugs.push(error);
  }

  private crashed(point: string): void {
    this.crashes.push(point);
    this.kill(this.downMs);
  }

  private applyTrouble(): void {
    this.link?.setCut(this.isCut);
    if (this.link !== undefined) this.link.isSlow = this.isSlow;
    if (this.signals !== undefined) this.signals.isCut = this.isCut;
  }

  private async run(ports: ServicePorts): Promise<void> {
    if (this.role.kind === 'scheduler') await runScheduling(schedulerSettings, { ...ports, projections: [] });
    else await runReplicaDriver(driverSettings, { ...ports, driver: this.role.driver(), probe: this.role.probe });
  }

  private follow<State>(log: LogLink, projection: Projection<State>) {
    return followProjection(log, projection, { snapshots: this.snapshots, snapshotEveryEvents: SNAPSHOT_EVENTS });
  }
}

import type { StreamName } from '@penstock/contract-events';
import type { EventLog, RecordedEvent, StreamBounds, Subscription } from './event-log.js';
import type { LiveProjection, Positions, Projection, SnapshotStore } from './projection.js';

/** A snapshot is written after this many events, so a start replays at most about as many. */
export const SNAPSHOT_EVERY_EVENTS = 2_000;

export interface FollowOptions {
  readonly snapshots?: SnapshotStore | undefined;
  readonly snapshotEveryEvents?: number | undefined;
  /** Told of an event that `apply` could not take; the projection goes on without it. */
  readonly onPoison?: ((event: RecordedEvent, error: unknown) => void) | undefined;
}

/**
 * Starts an in-memory projection from its newest snapshot and follows the tail of its streams.
 * Resolves once it has applied everything that stood in the streams when it began.
 */
export async function followProjection<State>(log: EventLog, projection: Projection<State>, options: FollowOptions = {}): Promise<LiveProjection<State>> {
  const follower = new ProjectionFollower(log, projection, options);
  await follower.start();
  return follower;
}

interface Waiter {
  readonly stream: string;
  readonly sequence: number;
  readonly resolve: () => void;
}

class ProjectionFollower<State> implements LiveProjection<State> {
  private current: State;
  private readonly applied: Record<string, number> = {};
  private readonly listeners = new Set<() => void>();
  private readonly subscriptions: Subscription[] = [];
  private waiters: Waiter[] = [];
  private sinceSnapshot = 0;

  constructor(private readonly log: EventLog, private readonly projection: Projection<State>, private readonly options: FollowOptions) {
    this.current = projection.initialState();
  }

  state(): State {
    return this.current;
  }

  positions(): Positions {
    return { ...this.applied };
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  waitFor(stream: StreamName, sequence: number): Promise<void> {
    if ((this.applied[stream] ?? 0) >= sequence) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push({ stream, sequence, resolve }));
  }

  async close(): Promise<void> {
    await Promise.all(this.subscriptions.map((subscription) => subscription.close()));
  }

  async start(): Promise<void> {
    const bounds = new Map<StreamName, StreamBounds>();
    for (const stream of this.projection.streams) bounds.set(stream, await this.log.bounds(stream));
    await this.restoreSnapshot(bounds);
    for (const stream of this.projection.streams) {
      const from = (this.applied[stream] ?? 0) + 1;
      this.subscriptions.push(await this.log.tail(stream, from, (events, through) => this.applyBatch(stream, events, through)));
    }
    await Promise.all([...bounds].map(([stream, { firstSequence, lastSequence }]) => (lastSequence < firstSequence ? undefined : this.waitFor(stream, lastSequence))));
  }

  /** A snapshot from beyond the end of a stream belongs to another log (restored, or made anew) and is not used. */
  private async restoreSnapshot(bounds: ReadonlyMap<StreamName, StreamBounds>): Promise<void> {
    const stored = await this.options.snapshots?.load(this.projection.name).catch(() => undefined);
    if (stored === undefined || stored.version !== this.projection.version) return;
    if ([...bounds].some(([stream, { lastSequence }]) => (stored.positions[stream] ?? 0) > lastSequence)) return;
    this.current = this.projection.restore(stored.state);
    Object.assign(this.applied, stored.positions);
  }

  private applyBatch(stream: StreamName, events: readonly RecordedEvent[], throughSequence: number): void {
    let changed = false;
    for (const event of events) {
      if (event.sequence <= (this.applied[stream] ?? 0)) continue;
      try {
        this.current = this.projection.apply(this.current, event);
      } catch (error) {
        this.options.onPoison?.(event, error);
      }
      this.applied[stream] = event.sequence;
      this.sinceSnapshot += 1;
      changed = true;
    }
    this.applied[stream] = Math.max(this.applied[stream] ?? 0, throughSequence);
    this.settleWaiters();
    if (changed) for (const listener of this.listeners) listener();
    if (this.sinceSnapshot >= (this.options.snapshotEveryEvents ?? SNAPSHOT_EVERY_EVENTS)) this.saveSnapshot();
  }

  private settleWaiters(): void {
    const due = this.waiters.filter((waiter) => (this.applied[waiter.stream] ?? 0) >= waiter.sequence);
    this.waiters = this.waiters.filter((waiter) => !due.includes(waiter));
    for (const waiter of due) waiter.resolve();
  }

  private saveSnapshot(): void {
    this.sinceSnapshot = 0;
    const snapshot = { version: this.projection.version, positions: this.positions(), state: this.projection.snapshot(this.current) };
    // A lost snapshot only makes the next start longer.
    this.options.snapshots?.save(this.projection.name, snapshot).catch(() => undefined);
  }
}

import { ReplicaAssignmentError, type DisruptionBudget, type DrivenNode, type GeometryDriver, type ReplicaAssignment, type ReplicaDriver, type ReplicaObservation, type RetireOutcome } from '@penstock/domain-lifecycle';
import type { Clock, Logger, Timers } from '@penstock/kernel';
import { loadMsOf, pullBytesOf, STOP_MS, timingModelOf, weightBytesOf } from './cold-start.js';
import type { EngineHost, HostedEngine } from './engine-host.js';
import { machinesOf, type FleetDescription } from './fleet-description.js';
import { SharedTransfers } from './shared-transfers.js';
import { SimulatedMachine, type Seat } from './simulated-machine.js';

const GIGABYTE = 1_000_000_000;
/** `nvidia-smi mig` takes about this long to make or to destroy an instance: an estimate. */
const MIG_CHANGE_MS = 1_500;
const MULTIPLIER = 6_364_136_223_846_793_005n;
const INCREMENT = 1_442_695_040_888_963_407n;

export interface SimulatedFleetParts {
  readonly description: FleetDescription;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly engines: EngineHost;
  readonly agentVersion: string;
  readonly logger: Logger;
}

interface Part {
  readonly machine: SimulatedMachine;
  readonly seats: readonly Seat[];
}

interface Running {
  readonly assignment: ReplicaAssignment;
  /** One for each node of the gang, the leading one first. */
  readonly parts: readonly Part[];
  observation: ReplicaObservation;
  /** Breaks off the step under way. */
  cancel: () => void;
  holdsMemory: boolean;
  /** Everything is pulled, and the MIG instance that it is to run in is not there yet. */
  waitsForInstance: boolean;
  engine: HostedEngine | undefined;
}

/**
 * A fleet that is only imagined, in whatever time its clock and timers keep: virtual for simulations, real for a look at a
 * thousand GPUs. Nodes with GPUs and MIG layouts, pulls that share bandwidth, caches, cold starts, and every way to fail.
 * Memory is held as engines hold it, whatever the log says: who starts a second engine on taken memory sees it die.
 */
export class SimulatedFleet {
  readonly machines: ReadonlyMap<string, SimulatedMachine>;
  private readonly transfers: SharedTransfers;
  private readonly running = new Map<string, Running>();
  private readonly listeners = new Set<() => void>();
  private readonly failing = new Map<string, number>();
  private readonly hanging = new Map<string, number>();
  private budgets = new Map<string, number>();
  private random: bigint;
  private starts = 0;

  constructor(private readonly parts: SimulatedFleetParts) {
    const { description, clock, timers, agentVersion } = parts;
    this.transfers = new SharedTransfers(clock, timers, description.registryGBps * GIGABYTE, description.timeScale);
    this.machines = new Map(machinesOf(description).map((spec) => [spec.nodeId, new SimulatedMachine(spec, this.transfers, agentVersion)]));
    this.random = BigInt(description.seed);
  }

  /** The driver of these nodes, of all when left out. Several may stand for parts of one fleet, as agents do. */
  driver(owns: (nodeId: string) => boolean = () => true): ReplicaDriver {
    return new FleetDriver(this, (nodeId) => this.machines.has(nodeId) && owns(nodeId));
  }

  /** The next `count` starts of this endpoint end with an error before they serve. */
  failStarts(endpointId: string, count: number): void {
    this.failing.set(endpointId, count);
  }

  /** The next `count` starts of this endpoint never end. */
  hangStarts(endpointId: string, count: number): void {
    this.hanging.set(endpointId, count);
  }

  crashEngine(replicaId: string): void {
    const running = this.running.get(replicaId);
    if (running === undefined || running.observation.phase === 'ended') return;
    this.end(running, { wasAsked: false, reason: 'the engine exited with signal SIGKILL' }, true);
    this.changed();
  }

  /** Loses its power: everything on it is gone at once, except what lies on its disk. */
  failNode(nodeId: string): void {
    this.switchOff(this.machine(nodeId), 'off');
  }

  /** Comes back, reachable, with nothing running. */
  returnNode(nodeId: string): void {
    const machine = this.machine(nodeId);
    Object.assign(machine, { power: 'on', isReachable: true, reclaimAtMs: undefined });
    this.changed();
  }

  /** Cuts it off, or joins it again: what runs on it runs on. */
  setReachable(nodeId: string, isReachable: boolean): void {
    this.machine(nodeId).isReachable = isReachable;
    this.changed();
  }

  /** Its owner wants it back: told now, taken after the notice. */
  reclaim(nodeId: string, noticeMs: number): void {
    const machine = this.machine(nodeId);
    const dueMs = this.parts.clock.now() + noticeMs;
    machine.reclaimAtMs = dueMs;
    this.parts.timers.after(noticeMs, () => {
      if (machine.reclaimAtMs === dueMs) this.switchOff(machine, 'gone');
    });
    this.changed();
  }

  /** Lays out GPUs as `nvidia-smi mig` does: it takes a while, and refuses what the GPU's driver refuses. */
  readonly mig: GeometryDriver = {
    take: async ({ kind, nodeId, acceleratorId, profile, start }) => {
      const machine = this.machine(nodeId);
      await new Promise<void>((resolve) => this.after(MIG_CHANGE_MS, resolve));
      if (!machine.answers) throw new Error(`node ${nodeId} does not answer`);
      const uuid = kind === 'create' ? machine.createInstance(acceleratorId, { profile, start }) : (machine.destroyInstance(acceleratorId, { profile, start }), null);
      for (const running of this.running.values()) if (running.waitsForInstance) this.load(running);
      this.changed();
      return { uuid };
    },
  };

  replicas(owns: (nodeId: string) => boolean): readonly ReplicaObservation[] {
    const seen: ReplicaObservation[] = [];
    for (const { observation, assignment, parts } of this.running.values()) {
      const machine = parts[0]?.machine;
      if (!owns(assignment.nodeId) || machine?.isReachable !== true) continue;
      const pull = observation.phase === 'pulling' ? parts.map((part) => part.machine.store.progressOf(assignment.modelVersionId)).find((progress) => progress !== undefined) : undefined;
      seen.push(pull === undefined ? observation : { ...observation, pull });
    }
    return seen;
  }

  nodes(owns: (nodeId: string) => boolean): readonly DrivenNode[] {
    const nodes: DrivenNode[] = [];
    for (const machine of this.machines.values()) {
      if (machine.power === 'gone' || !owns(machine.spec.nodeId)) continue;
      const reason = machine.power === 'off' ? 'it has no power' : machine.isReachable ? null : 'it cannot be reached';
      const reclaimAt = machine.reclaimAtMs === undefined ? undefined : new Date(machine.reclaimAtMs).toISOString();
      nodes.push({ report: machine.report, isReady: reason === null, reason, reclaimAt });
    }
    return nodes;
  }

  async start(assignment: ReplicaAssignment): Promise<void> {
    const { replicaId, modelVersionId } = assignment;
    const parts = this.partsOf(assignment);
    this.reach(parts);
    if (this.running.has(replicaId)) return;
    this.starts += 1;
    const running: Running = { assignment, parts, observation: { replicaId, phase: 'pulling', url: null, blocked: null, end: null }, cancel: () => undefined, holdsMemory: false, waitsForInstance: false, engine: undefined };
    this.running.set(replicaId, running);
    const bytes = pullBytesOf(assignment);
    let missing = parts.length;
    const cancels = bytes === 0 ? [] : parts.map(({ machine }) => machine.store.fetch(modelVersionId, bytes, () => ((missing -= 1) === 0 ? this.load(running) : undefined)));
    if (bytes === 0) this.load(running);
    else if (missing > 0) running.cancel = () => cancels.forEach((cancel) => cancel());
    this.changed();
  }

  async retire(replicaId: string): Promise<RetireOutcome> {
    const running = this.running.get(replicaId);
    if (running === undefined || running.observation.phase === 'ending') return 'ending';
    this.reach(running.parts.slice(0, 1));
    if (this.isProtected(running)) return 'held';
    running.cancel();
    this.observe(running, { phase: 'ending' });
    running.cancel = this.after(STOP_MS, () => this.forget(running, false));
    return 'ending';
  }

  async remove(replicaId: string): Promise<void> {
    const running = this.running.get(replicaId);
    if (running === undefined) return;
    // The leader ends its members, or they end by themselves without it.
    this.reach(running.parts.slice(0, 1));
    this.forget(running, true);
  }

  protect(budgets: readonly DisruptionBudget[]): void {
    this.budgets = new Map(budgets.map(({ endpointId, availableMin }) => [endpointId, availableMin]));
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  counters(): Readonly<Record<string, number>> {
    return { starts: this.starts, running: this.running.size, nodes: this.machines.size, budgets: this.budgets.size };
  }

  private partsOf({ members, reservedBytes, mig }: ReplicaAssignment): readonly Part[] {
    const count = members.reduce((sum, member) => sum + member.acceleratorIds.length, 0);
    const bytes = Math.floor(reservedBytes / Math.max(1, count));
    return members.map(({ nodeId, acceleratorIds }) => {
      const machine = this.machine(nodeId);
      const missing = acceleratorIds.find((id) => machine.accelerator(id) === undefined);
      if (missing !== undefined) throw new ReplicaAssignmentError('engine_exited', `${nodeId} has no accelerator ${missing}`);
      return { machine, seats: acceleratorIds.map((acceleratorId) => ({ acceleratorId, instance: mig, bytes })) };
    });
  }

  private reach(parts: readonly Part[]): void {
    const silent = parts.find(({ machine }) => !machine.answers);
    if (silent !== undefined) throw new Error(`node ${silent.machine.spec.nodeId} does not answer`);
  }

  /** Every member at once, or none: a gang of which one part finds no memory ends as a whole. */
  private load(running: Running): void {
    const { assignment, parts } = running;
    const { mig } = assignment;
    running.waitsForInstance = mig !== null && parts.some(({ machine, seats }) => seats.some(({ acceleratorId }) => !machine.hasInstance(acceleratorId, mig)));
    if (running.waitsForInstance) return this.observe(running, { blocked: { code: 'start_timeout', reason: `its MIG instance ${mig?.profile} is not there` } });
    const taken: Part[] = [];
    for (const part of parts) {
      const refusal = part.machine.allocate(part.seats);
      if (refusal === undefined) {
        taken.push(part);
        continue;
      }
      for (const { machine, seats } of taken) machine.release(seats);
      this.end(running, { wasAsked: false, reason: refusal }, true);
      return this.changed();
    }
    running.holdsMemory = true;
    this.observe(running, { phase: 'loading', blocked: null });
    const storageBps = Math.min(...parts.map(({ machine }) => machine.spec.storageBps));
    running.cancel = this.after(loadMsOf(weightBytesOf(assignment), storageBps, this.chance()), () => void this.serve(running));
  }

  private async serve(running: Running): Promise<void> {
    const { assignment, parts } = running;
    if (takeOne(this.hanging, assignment.endpointId)) return;
    if (takeOne(this.failing, assignment.endpointId)) {
      this.end(running, { wasAsked: false, reason: 'the engine exited with code 1' }, true);
      return this.changed();
    }
    const type = parts[0]?.machine.accelerator(assignment.acceleratorIds[0] ?? '')?.type ?? '';
    const { replicaId, modelName, slots, contextTokens } = assignment;
    try {
      const engine = await this.parts.engines.open({ replicaId, modelName, slots, contextTokens, timingModel: timingModelOf(assignment, type), timeScale: this.parts.description.timeScale });
      // It may have been removed, or have lost its node, while the engine opened.
      if (this.running.get(replicaId) !== running || running.observation.phase !== 'loading') return await engine.close(true);
      running.engine = engine;
      this.observe(running, { phase: 'serving', url: engine.url });
    } catch (error) {
      this.end(running, { wasAsked: false, reason: error instanceof Error ? error.message : String(error) }, true);
      this.changed();
    }
  }

  private isProtected({ assignment, observation }: Running): boolean {
    const others = [...this.running.values()].filter((other) => other.assignment.endpointId === assignment.endpointId && other.assignment.replicaId !== assignment.replicaId && other.observation.phase === 'serving');
    return observation.phase === 'serving' && others.length < (this.budgets.get(assignment.endpointId) ?? 0);
  }

  /** It runs no more, and is still shown until somebody removes it. */
  private end(running: Running, end: NonNullable<ReplicaObservation['end']>, isCrash: boolean): void {
    running.cancel();
    running.cancel = () => undefined;
    if (running.holdsMemory) for (const { machine, seats } of running.parts) machine.release(seats);
    running.holdsMemory = false;
    running.waitsForInstance = false;
    this.closeEngine(running, isCrash);
    running.observation = { ...running.observation, phase: 'ended', end };
  }

  private forget(running: Running, isCrash: boolean): void {
    if (running.observation.phase !== 'ended') this.end(running, { wasAsked: true, reason: 'it was asked to end' }, isCrash);
    this.running.delete(running.assignment.replicaId);
    this.changed();
  }

  private closeEngine(running: Running, isCrash: boolean): void {
    running.engine?.close(isCrash).catch((error: unknown) => this.parts.logger.warn({ err: error, replicaId: running.assignment.replicaId }, 'an engine could not be closed'));
    running.engine = undefined;
  }

  private switchOff(machine: SimulatedMachine, power: 'off' | 'gone'): void {
    machine.power = power;
    machine.reclaimAtMs = undefined;
    for (const running of [...this.running.values()]) {
      if (!running.parts.some((part) => part.machine === machine)) continue;
      this.end(running, { wasAsked: false, reason: `node ${machine.spec.nodeId} lost power` }, true);
      // What its leader runs is gone with it; of a member's loss the leader tells.
      if (running.parts[0]?.machine === machine) this.running.delete(running.assignment.replicaId);
    }
    machine.loseMemory();
    this.changed();
  }

  private machine(nodeId: string): SimulatedMachine {
    const machine = this.machines.get(nodeId);
    if (machine === undefined) throw new ReplicaAssignmentError('unreachable', `the simulated fleet has no node ${nodeId}`);
    return machine;
  }

  private after(delayMs: number, call: () => void): () => void {
    return this.parts.timers.after(Math.round(delayMs * this.parts.description.timeScale), call);
  }

  private observe(running: Running, change: Partial<ReplicaObservation>): void {
    running.observation = { ...running.observation, ...change };
    this.changed();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** From 0 to 1, by a linear congruential generator (Knuth's MMIX constants). */
  private chance(): number {
    this.random = (this.random * MULTIPLIER + INCREMENT) & 0xffff_ffff_ffff_ffffn;
    return Number(this.random >> 11n) / 2 ** 53;
  }
}

/** True, and one fewer left, while some are. */
function takeOne(left: Map<string, number>, key: string): boolean {
  const count = left.get(key) ?? 0;
  if (count > 0) left.set(key, count - 1);
  return count > 0;
}

class FleetDriver implements ReplicaDriver {
  readonly kind = 'simulated';
  readonly mig: GeometryDriver;
  private readonly stops = new Set<() => void>();

  constructor(private readonly fleet: SimulatedFleet, readonly owns: (nodeId: string) => boolean) {
    this.mig = fleet.mig;
  }

  isSynced(): boolean {
    return true;
  }

  nodes(): readonly DrivenNode[] {
    return this.fleet.nodes(this.owns);
  }

  replicas(): readonly ReplicaObservation[] {
    return this.fleet.replicas(this.owns);
  }

  start(assignment: ReplicaAssignment): Promise<void> {
    return this.fleet.start(assignment);
  }

  retire(replicaId: string): Promise<RetireOutcome> {
    return this.fleet.retire(replicaId);
  }

  remove(replicaId: string): Promise<void> {
    return this.fleet.remove(replicaId);
  }

  async protect(budgets: readonly DisruptionBudget[]): Promise<void> {
    this.fleet.protect(budgets);
  }

  onChange(listener: () => void): () => void {
    const stop = this.fleet.onChange(listener);
    this.stops.add(stop);
    return stop;
  }

  counters(): Readonly<Record<string, number>> {
    return this.fleet.counters();
  }

  /** What it imagines goes on: the next service over it finds everything as it is. */
  async close(): Promise<void> {
    for (const stop of this.stops) stop();
  }
}

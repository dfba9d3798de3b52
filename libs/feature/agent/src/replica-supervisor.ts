import type { ReplicaTelemetry } from '@penstock/contract-commands';
import type { EngineKind } from '@penstock/contract-events';
import type { ReplicaCommand, ReplicaState } from '@penstock/domain-lifecycle';
import { adapterReportOf, loadOf, type EngineProcess, type PulledArtifact } from '@penstock/domain-serving';
import type { Logger, Timers } from '@penstock/kernel';
import type { AgentConfig } from './agent-config.js';
import type { NodeMemory } from './agent-memory.js';
import type { AgentPorts } from './agent-ports.js';
import { CurveWatch } from './curve-watch.js';
import type { FleetReporter } from './fleet-reporter.js';
import { ProgressWatch } from './progress-watch.js';
import type { StartPlan } from './start-plan.js';
import { startReplica } from './start-replica.js';

/** Requests that gateways sent before they heard of the drain are still on their way for this long. */
const DRAIN_SETTLE_MS = 500;
const DRAIN_POLL_MS = 250;
const TELEMETRY_TIMEOUT_MS = 2_000;
const SILENCE_PROBE_TIMEOUT_MS = 60_000;

export interface SupervisorParts {
  readonly config: AgentConfig;
  readonly ports: AgentPorts;
  readonly memory: NodeMemory;
  readonly reporter: FleetReporter;
  readonly logger: Logger;
  /** Asks for a reconciliation, since something came to an end. */
  readonly onSettled: () => void;
}

/** One replica on this node, from its start to the end of its engine. */
export class ReplicaSupervisor {
  private process: EngineProcess | undefined;
  private artifact: PulledArtifact | undefined;
  private readonly starting = new AbortController();
  private startTask: Promise<void> | undefined;
  private drainTask: Promise<void> | undefined;
  private endTask: Promise<void> | undefined;
  private exitTask: Promise<void> | undefined;
  private isEnding = false;
  private isOver = false;
  private isDetached = false;
  private lastAnswerMs: number;
  private isSampling = false;
  private isProbing = false;
  private readonly progress = new ProgressWatch();
  private readonly curve: CurveWatch;

  private constructor(private readonly parts: SupervisorParts, readonly replicaId: string, readonly endpointId: string, private readonly engine: EngineKind) {
    this.lastAnswerMs = parts.ports.clock.now();
    this.curve = new CurveWatch(replicaId, parts.reporter, parts.config.PROFILE_INTERVAL_MS, this.lastAnswerMs);
  }

  /** Begins the start of a placed replica. */
  static start(plan: StartPlan, parts: SupervisorParts): ReplicaSupervisor {
    const supervisor = new ReplicaSupervisor(parts, plan.replicaId, plan.endpointId, plan.engine);
    supervisor.startTask = supervisor.quietly(supervisor.runStart(plan), () => {
      supervisor.startTask = undefined;
    });
    return supervisor;
  }

  /** Takes over an engine that survived an earlier agent. */
  static adopt(replica: ReplicaState, engine: EngineKind, process: EngineProcess, parts: SupervisorParts): ReplicaSupervisor {
    const supervisor = new ReplicaSupervisor(parts, replica.replicaId, replica.endpointId, engine);
    supervisor.watch(process);
    return supervisor;
  }

  /** True while something of it exists on this node: a start under way, or an engine. */
  get isAlive(): boolean {
    return [this.process, this.startTask, this.endTask, this.exitTask, this.drainTask].some((part) => part !== undefined);
  }

  /** True once the log knows that the replica ended: the projection will show it. */
  get hasReportedEnd(): boolean {
    return this.isOver;
  }

  keep(artifact: PulledArtifact): void {
    if (this.process === undefined) artifact.release();
    else this.artifact = artifact;
  }

  /** Lets running requests end, at most for the drain time-out, then stops the engine and says so. Safe to call again. */
  drain(timeoutMs = this.parts.config.REPLICA_DRAIN_TIMEOUT_MS): Promise<void> {
    this.starting.abort();
    this.drainTask ??= this.quietly(this.runDrain(timeoutMs), () => {
      this.drainTask = undefined;
    });
    return this.drainTask;
  }

  /** Ends whatever is there at once, without a word to the log: the replica's story is over already. */
  end(): Promise<void> {
    this.starting.abort();
    this.isEnding = true;
    this.endTask ??= this.quietly(this.runEnd(), () => {
      this.endTask = undefined;
    });
    return this.endTask;
  }

  /** Gives up a start and forgets a running engine without touching it, so that the next agent finds it. */
  async abandon(): Promise<void> {
    this.isEnding = true;
    this.starting.abort();
    await this.startTask;
  }

  /** Takes no notice of its engine any more. */
  detach(): void {
    this.isDetached = true;
  }

  /** Reads the engine's load and sends it on; an engine that stays silent, or does not get on with its requests, has to prove that it lives. */
  async sampleTelemetry(): Promise<void> {
    const { process, parts } = this;
    if (process === undefined || this.isEnding || this.isSampling) return;
    this.isSampling = true;
    const target = { kind: this.engine, url: process.url, servedModel: process.servedModel };
    const telemetry = await parts.ports.probe.telemetry(target, TELEMETRY_TIMEOUT_MS);
    this.isSampling = false;
    const nowMs = parts.ports.clock.now();
    if (telemetry === undefined) return this.onSilence(nowMs);
    const stands = this.progress.stands(telemetry);
    if (!stands) this.lastAnswerMs = nowMs;
    const sample: ReplicaTelemetry = { replicaId: this.replicaId, endpointId: this.endpointId, sentAtMs: nowMs, ...loadOf(telemetry) };
    parts.ports.signals.publish(`tele.replica.${this.replicaId}`, sample);
    const adapters = adapterReportOf(this, telemetry, nowMs);
    if (adapters !== undefined) parts.ports.signals.publish(`tele.adapters.${this.replicaId}`, adapters);
    await this.curve.observe(telemetry, nowMs);
    if (stands) await this.onSilence(nowMs);
  }

  private async runStart(plan: StartPlan): Promise<void> {
    const { config, ports, memory, reporter, logger } = this.parts;
    const outcome = await startReplica(plan, {
      artifacts: ports.artifacts, driver: ports.drivers.find((driver) => driver.kind === plan.engine), probe: ports.probe, reporter, signals: ports.signals, clock: ports.clock,
      warmUpTimeoutMs: config.WARM_UP_TIMEOUT_MS, onSpawned: (record) => memory.remember(record),
    }, this.starting.signal);
    if (outcome.kind === 'ready') {
      this.artifact = outcome.started.artifact;
      await memory.remember(outcome.started.process.record);
      this.watch(outcome.started.process);
      logger.info({ replicaId: this.replicaId, url: outcome.started.process.url }, 'replica ready');
      return;
    }
    await memory.forget(this.replicaId);
    if (outcome.kind === 'given-up') return;
    logger.warn({ replicaId: this.replicaId, code: outcome.code, reason: outcome.reason }, 'replica failed to start');
    await this.reportEnd({ kind: 'fail', code: outcome.code, reason: outcome.reason }, this.starting.signal);
  }

  private watch(process: EngineProcess): void {
    this.process = process;
    this.lastAnswerMs = this.parts.ports.clock.now();
    void process.exited.then(({ reason }) => {
      if (this.isDetached) return;
      this.exitTask = this.quietly(this.onExit(reason), () => {
        this.exitTask = undefined;
      });
    });
  }

  /** What goes wrong in a task of its own is logged; the next reconciliation starts from what is then. */
  private async quietly(task: Promise<void>, onEnd: () => void): Promise<void> {
    await task.catch((error: unknown) => this.parts.logger.error({ err: error, replicaId: this.replicaId }, 'a step of a replica failed'));
    onEnd();
    this.parts.onSettled();
  }

  private async reportEnd(command: ReplicaCommand, signal?: AbortSignal): Promise<void> {
    this.isOver ||= await this.parts.reporter.replica(this.replicaId, command, signal);
  }

  private async onExit(reason: string): Promise<void> {
    const wasIntended = this.isEnding;
    await this.clear();
    if (wasIntended) return;
    this.parts.logger.warn({ replicaId: this.replicaId, reason }, 'engine died');
    await this.reportEnd({ kind: 'fail', code: 'engine_exited', reason });
  }

  private async runDrain(timeoutMs: number): Promise<void> {
    const { ports, config } = this.parts;
    await this.startTask;
    const isIdle = this.process === undefined || (await this.untilIdle(timeoutMs));
    this.isEnding = true;
    await this.process?.stop(config.ENGINE_STOP_GRACE_MS);
    await this.clear();
    const waitedSeconds = Math.round(timeoutMs / 1_000);
    await this.reportEnd({ kind: 'stop', reason: isIdle ? 'drained' : `stopped with requests still running after ${waitedSeconds} s of draining` });
    ports.logger.info({ replicaId: this.replicaId, isIdle }, 'replica stopped');
  }

  /** True once two looks in a row find the engine idle; false at the time-out. An engine that died is idle. */
  private async untilIdle(timeoutMs: number): Promise<boolean> {
    const { clock, probe, timers } = this.parts.ports;
    const deadlineMs = clock.now() + timeoutMs;
    await pause(timers, Math.min(DRAIN_SETTLE_MS, timeoutMs));
    let idleLooks = 0;
    while (this.process !== undefined) {
      const target = { kind: this.engine, url: this.process.url, servedModel: this.process.servedModel };
      const telemetry = await probe.telemetry(target, TELEMETRY_TIMEOUT_MS);
      idleLooks = telemetry !== undefined && telemetry.running + telemetry.waiting === 0 ? idleLooks + 1 : 0;
      if (idleLooks >= 2) return true;
      if (clock.now() >= deadlineMs) return false;
      await pause(timers, DRAIN_POLL_MS);
    }
    return true;
  }

  private async runEnd(): Promise<void> {
    await this.startTask;
    await this.process?.stop(this.parts.config.ENGINE_STOP_GRACE_MS);
    await this.clear();
  }

  private async clear(): Promise<void> {
    this.process = undefined;
    this.artifact?.release();
    this.artifact = undefined;
    await this.parts.memory.forget(this.replicaId);
  }

  private async onSilence(nowMs: number): Promise<void> {
    const { config, logger, ports } = this.parts;
    const { process } = this;
    if (process === undefined || this.isProbing || nowMs - this.lastAnswerMs < config.ENGINE_SILENT_TIMEOUT_MS) return;
    this.isProbing = true;
    const result = await ports.probe.generate({ kind: this.engine, url: process.url, servedModel: process.servedModel }, SILENCE_PROBE_TIMEOUT_MS);
    this.isProbing = false;
    this.lastAnswerMs = ports.clock.now();
    if (result.kind === 'answered' || this.process !== process || this.isEnding) return;
    logger.warn({ replicaId: this.replicaId, reason: result.reason }, 'engine does not generate; it is ended');
    this.isEnding = true;
    await process.kill();
    await this.clear();
    await this.reportEnd({ kind: 'fail', code: 'unreachable', reason: `The engine ran and did not generate: ${result.reason}` });
    this.parts.onSettled();
  }
}

function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => timers.after(delayMs, resolve));
}


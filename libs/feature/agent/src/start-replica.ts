import type { PullProgress } from '@penstock/contract-commands';
import type { ReplicaProfileMeasuredV1 } from '@penstock/contract-events';
import { replicaProfileDecider, replicaProfileRef, type ReplicaFailureCode } from '@penstock/domain-lifecycle';
import {
  ArtifactPullError, EngineStartError, type ArtifactPuller, type EngineDriver, type EngineProbe, type EngineProcess, type EngineRecord, type PulledArtifact,
} from '@penstock/domain-serving';
import type { Clock, Signals } from '@penstock/kernel';
import type { FleetReporter } from './fleet-reporter.js';
import type { StartingPhase, StartPlan } from './start-plan.js';

export interface StartParts {
  readonly artifacts: ArtifactPuller;
  readonly driver: EngineDriver | undefined;
  readonly probe: EngineProbe;
  readonly reporter: FleetReporter;
  readonly signals: Signals;
  readonly clock: Clock;
  readonly warmUpTimeoutMs: number;
  readonly onSpawned: (record: EngineRecord) => Promise<void>;
}

export interface StartedReplica {
  readonly process: EngineProcess;
  readonly artifact: PulledArtifact;
}

export type StartOutcome =
  | { readonly kind: 'ready'; readonly started: StartedReplica }
  /** The replica is not wanted any more; nothing of it is left. */
  | { readonly kind: 'given-up' }
  | { readonly kind: 'failed'; readonly code: ReplicaFailureCode; readonly reason: string };

class StartFailure extends Error {
  constructor(readonly code: ReplicaFailureCode, message: string) {
    super(message);
  }
}

/** Takes one placed replica to ready: pull, load, warm up by a real generation. Leaves nothing behind unless it ends ready. */
export async function startReplica(plan: StartPlan, parts: StartParts, signal: AbortSignal): Promise<StartOutcome> {
  let artifact: PulledArtifact | undefined;
  let process: EngineProcess | undefined;
  try {
    const { driver } = parts;
    if (driver === undefined) throw new StartFailure('engine_missing', `This node has no ${plan.engine}; install it and start the agent again.`);
    const timings = { pullMs: 0, loadMs: 0, warmUpMs: 0 };
    if (!(await advance(plan, 'pulling', parts.reporter, signal))) return await undo(process, artifact);
    artifact = await parts.artifacts.pull({ ...plan.pull, signal, onProgress: (progress) => parts.signals.publish(`tele.pull.${plan.replicaId}`, asPullProgress(plan, progress)) });
    timings.pullMs = artifact.ms;

    if (!(await advance(plan, 'loading', parts.reporter, signal))) return await undo(process, artifact);
    const loadingSinceMs = parts.clock.now();
    process = await load(plan, driver, artifact, parts.onSpawned, signal);
    timings.loadMs = Math.max(0, parts.clock.now() - loadingSinceMs);

    if (!(await advance(plan, 'warming', parts.reporter, signal))) return await undo(process, artifact);
    timings.warmUpMs = await warmUp(plan, process, parts);

    const { url, servedModel } = process;
    const { slots, contextTokens } = plan.spec;
    const isReady = await parts.reporter.replica(plan.replicaId, { kind: 'mark-ready', url, engine: plan.engine, servedModel, slots, contextTokens, timings }, signal);
    if (!isReady) return await undo(process, artifact);
    await tellProfile(plan, artifact, timings, parts.reporter);
    return { kind: 'ready', started: { process, artifact } };
  } catch (error) {
    await undo(process, artifact);
    return signal.aborted ? { kind: 'given-up' } : { kind: 'failed', ...describe(error) };
  }
}

/** What this start showed. It is worth one try: the next start measures again. */
async function tellProfile(plan: StartPlan, artifact: PulledArtifact, start: { readonly pullMs: number; readonly loadMs: number; readonly warmUpMs: number }, reporter: FleetReporter): Promise<void> {
  const { replicaId, endpointId, engine, measures, spec } = plan;
  const source = plan.pull.files.length === 0 ? 'none' : artifact.fromCache ? 'node_cache' : 'object_store';
  // llama.cpp sets the cache of every slot aside when it starts; other engines size theirs by what is free.
  const kvTokens = engine === 'llama.cpp' && spec.attachedUrl === null ? spec.slots * spec.contextTokens : null;
  const measured: ReplicaProfileMeasuredV1 = { ...measures, replicaId, endpointId, kvTokens, start: { source, ...start }, curve: [] };
  await reporter.tell(replicaProfileDecider, replicaProfileRef(replicaId), { kind: 'measure', measured }).catch(() => undefined);
}

const PHASES: readonly StartingPhase[] = ['placed', 'pulling', 'loading', 'warming'];

/** False when the replica is not wanted any more. */
async function advance(plan: StartPlan, phase: 'pulling' | 'loading' | 'warming', reporter: FleetReporter, signal: AbortSignal): Promise<boolean> {
  if (PHASES.indexOf(phase) <= PHASES.indexOf(plan.fromPhase)) return !signal.aborted;
  return reporter.replica(plan.replicaId, { kind: 'advance', phase }, signal);
}

async function undo(process: EngineProcess | undefined, artifact: PulledArtifact | undefined): Promise<{ kind: 'given-up' }> {
  await process?.kill();
  artifact?.release();
  return { kind: 'given-up' };
}

async function load(plan: StartPlan, driver: EngineDriver, artifact: PulledArtifact, onSpawned: StartParts['onSpawned'], signal: AbortSignal): Promise<EngineProcess> {
  try {
    return await driver.start({ ...plan.spec, modelPath: artifact.path, onSpawned, signal });
  } catch (error) {
    // An engine that dies while it loads may have met a file that rotted on the disk.
    const checked = error instanceof EngineStartError && error.code === 'engine_exited' && artifact.path !== null && !signal.aborted ? await artifact.verify() : undefined;
    if (checked?.intact === false) throw new StartFailure('digest_mismatch', `The engine could not load the model, and the file is damaged: ${checked.reason}.`);
    throw error;
  }
}

async function warmUp(plan: StartPlan, process: EngineProcess, parts: StartParts): Promise<number> {
  const target = { kind: plan.engine, url: process.url, servedModel: process.servedModel };
  const died = process.exited.then(({ reason }) => ({ kind: 'died' as const, reason }));
  const result = await Promise.race([parts.probe.generate(target, parts.warmUpTimeoutMs), died]);
  if (result.kind === 'died') throw new StartFailure('engine_exited', result.reason);
  if (result.kind === 'failed') throw new StartFailure('warm_up_failed', result.reason);
  return result.ms;
}

function describe(error: unknown): { code: ReplicaFailureCode; reason: string } {
  if (error instanceof StartFailure || error instanceof EngineStartError) return { code: error.code, reason: error.message };
  if (error instanceof ArtifactPullError && error.code !== 'aborted') return { code: error.code, reason: error.message };
  return { code: 'engine_exited', reason: `The start failed: ${error instanceof Error ? error.message : String(error)}` };
}

function asPullProgress(plan: StartPlan, { file, completedBytes, totalBytes }: { file: string; completedBytes: number; totalBytes: number | null }): PullProgress {
  return { replicaId: plan.replicaId, endpointId: plan.endpointId, file, completedBytes, totalBytes };
}

import { timingProfileNames } from '@penstock/domain-engine-model';
import type { ReplicaAssignment } from '@penstock/domain-lifecycle';
import { MODEL_FACTS } from '@penstock/domain-placement';

/**
 * The load of an engine is `start of the process + weights / storage + graph capture and compilation`, with 6 to 15 s for the first
 * and 5 to 40 s for the last: estimates made from published cold starts (84 s for 70B, 85 s for 32B), not measurements.
 */
const PROCESS_START_MS = { least: 6_000, most: 15_000 } as const;
const CAPTURE_MS = { least: 5_000, most: 40_000 } as const;
/** Weights from which on the capture takes longest: a 70B model at 16 bits. */
const LARGEST_BYTES = 141_000_000_000;
/** How long an engine takes to end when it is asked to. */
export const STOP_MS = 2_000;

/** Bytes of a replica's weights: the catalogue's where it knows the model, else all that is set aside; 0 for an engine without weights. */
export function weightBytesOf({ source, modelName, reservedBytes }: ReplicaAssignment): number {
  if (source.kind === 'none' || source.kind === 'attached') return 0;
  const known = MODEL_FACTS.find((model) => model.id.toLowerCase().endsWith(modelName.toLowerCase()));
  // Weights are a part of what is set aside, whatever precision was chosen.
  return Math.min(known?.weightBytes['bf16'] ?? known?.weightBytes['fp16'] ?? reservedBytes, reservedBytes);
}

/** Bytes that have to be pulled before a replica can load, on a node that has nothing of it. */
export function pullBytesOf(assignment: ReplicaAssignment): number {
  return assignment.source.kind === 'directory' ? 0 : weightBytesOf(assignment);
}

/** Milliseconds from the weights on the disk until the engine accepts requests. `chance` is from 0 to 1. */
export function loadMsOf(weightBytes: number, storageBps: number, chance: number): number {
  const size = Math.min(1, weightBytes / LARGEST_BYTES);
  const start = PROCESS_START_MS.least + (PROCESS_START_MS.most - PROCESS_START_MS.least) * chance;
  return start + (weightBytes / storageBps) * 1_000 + CAPTURE_MS.least + (CAPTURE_MS.most - CAPTURE_MS.least) * size;
}

const PROFILE_BYTES = [{ model: 'llama-3.1-8b', bytes: 16e9 }, { model: 'qwen3-32b', bytes: 65e9 }, { model: 'llama-3.1-70b', bytes: 141e9 }] as const;

/**
 * The timing profile that comes nearest: what the endpoint asks for by `timing_model`, else the known model whose weights are
 * nearest in size, on the accelerators that the replica has. A MIG slice has the pace of its whole GPU here.
 */
export function timingModelOf(assignment: ReplicaAssignment, acceleratorType: string): string {
  const asked = assignment.engineOptions['timing_model'];
  if (typeof asked === 'string') return asked;
  const gpu = acceleratorType.split('-')[0] ?? '';
  const count = [8, 4, 2, 1].find((parallel) => parallel <= assignment.acceleratorIds.length) ?? 1;
  const prefix = `${count === 1 ? '' : `${count}x`}${['h100', 'a100', 'l4'].includes(gpu) ? gpu : 'h100'}`;
  const bytes = assignment.reservedBytes;
  const [nearest] = [...PROFILE_BYTES].sort((one, other) => Math.abs(Math.log(one.bytes / Math.max(1, bytes))) - Math.abs(Math.log(other.bytes / Math.max(1, bytes))));
  const name = `${prefix}-${nearest?.model ?? PROFILE_BYTES[0].model}`;
  return timingProfileNames.includes(name) ? name : timingModelThatFits(prefix, name);
}

function timingModelThatFits(prefix: string, wished: string): string {
  const measured = timingProfileNames.find((name) => name === wished || name === `${wished}-fp8`);
  return measured ?? timingProfileNames.find((name) => name === `${prefix}-${PROFILE_BYTES[0].model}`) ?? 'h100-llama-3.1-8b';
}

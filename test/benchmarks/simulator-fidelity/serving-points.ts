// The measured serving points of dense models on H100: each group is one model, precision, engine and number of accelerators.
import { join } from 'node:path';
import { acceleratorShapes, datasheetStepTime, kvTokensThatFit, modelShapes, type AcceleratorShape, type LinearStepTime, type ModelShape } from '@penstock/domain-engine-model';
import { fitStepTime, heldOutError, type HeldOutError, type ServingPoint } from './fit-step-time.js';
import { numberOf, readCsv, tracesDir, type Row } from './traces.js';

const MODELS: Readonly<Record<string, string>> = {
  'meta-llama/Llama-3.1-8B-Instruct': 'llama-3.1-8b', 'meta-llama/Llama-3.1-70B': 'llama-3.1-70b', 'Qwen/Qwen3-32B': 'qwen3-32b',
};
/** Fewer points do not say anything about held-out shapes. */
const POINTS_MIN = 6;
const COEFFICIENTS = ['baseMs', 'decodeUs', 'prefillUs', 'contextNs', 'attentionNs'] as const;
/** A coefficient that a fit sets to nothing still counts as this share of the datasheets'. */
const RATIO_MIN = 0.2;

export interface Group {
  readonly name: string;
  readonly model: string;
  readonly backend: string;
  readonly tensorParallel: number;
  readonly datasheet: LinearStepTime;
  readonly points: readonly ServingPoint[];
}

export interface GroupError extends HeldOutError {
  readonly group: string;
  readonly model: string;
  readonly tensorParallel: number;
}

/** Held-out error of each group. What its own shapes leave open is taken from the other models on the same engine. */
export function servingPointErrors(): GroupError[] {
  const groups = readGroups();
  const fits = new Map(groups.map((group) => [group, fitStepTime(group.points, group.datasheet)]));
  return groups.map((group) => {
    const others = groups.filter((other) => other.model !== group.model && other.tensorParallel === group.tensorParallel);
    const same = others.filter((other) => other.backend === group.backend);
    const prior = scaled(group.datasheet, (same.length > 0 ? same : others).map((other) => ({ fit: fits.get(other) ?? other.datasheet, datasheet: other.datasheet })));
    return { group: group.name, model: group.model, tensorParallel: group.tensorParallel, ...heldOutError(group.points, prior) };
  });
}

/** The datasheets' coefficients times how far the others' measured ones are from theirs (geometric mean). */
function scaled(datasheet: LinearStepTime, others: readonly { fit: LinearStepTime; datasheet: LinearStepTime }[]): LinearStepTime {
  const result = { ...datasheet };
  for (const name of COEFFICIENTS) {
    const logs = others.map((other) => Math.log(Math.max(RATIO_MIN, other.fit[name] / other.datasheet[name])));
    result[name] *= Math.exp(logs.reduce((sum, value) => sum + value, 0) / Math.max(1, logs.length));
  }
  return result;
}

function readGroups(): Group[] {
  const rows = readCsv(join(tracesDir(), '..', 'throughput-silicon.csv.gz')).filter((row) => row['system'] === 'h100_sxm' && (row['model'] ?? '') in MODELS);
  const byName = Map.groupBy(rows, (row) => ['model', 'precision', 'backend', 'backend_version', 'tp'].map((column) => row[column]).join(' '));
  return [...byName].filter(([, members]) => members.length >= POINTS_MIN).map(([name, members]) => groupOf(name, members));
}

function groupOf(name: string, rows: readonly Row[]): Group {
  const [first = {}] = rows;
  const model = MODELS[first['model'] ?? ''] ?? '';
  const shape = known(modelShapes, model);
  const accelerator = known(acceleratorShapes, 'h100');
  const isFp8 = first['precision'] === 'fp8';
  const backend = first['backend'] ?? '';
  // TensorRT-LLM's fp8 checkpoints come with an fp8 cache; vLLM keeps 16 bits unless it is told otherwise.
  const layout = { tensorParallel: numberOf(first, 'tp'), weightBytes: isFp8 ? 1 : 2, kvBytes: isFp8 && backend === 'trtllm' ? 1 : 2 };
  const kvTokens = kvTokensThatFit(shape, accelerator, layout);
  return { name, model, backend, tensorParallel: layout.tensorParallel, datasheet: datasheetStepTime(shape, accelerator, layout), points: rows.map((row) => pointOf(row, kvTokens)) };
}

function pointOf(row: Row, kvTokens: number): ServingPoint {
  const [promptTokens, outputTokens] = [numberOf(row, 'isl'), numberOf(row, 'osl')];
  return { promptTokens, outputTokens, concurrency: numberOf(row, 'concurrency'), sequencesMax: kvTokens / (promptTokens + outputTokens / 2), ttftMs: numberOf(row, 'ttft_ms'), tpotMs: numberOf(row, 'tpot_ms') };
}

function known<Shape extends ModelShape | AcceleratorShape>(shapes: Readonly<Record<string, Shape>>, name: string): Shape {
  const shape = shapes[name];
  if (shape === undefined) throw new Error(`The engine model knows no shape of ${name}.`);
  return shape;
}

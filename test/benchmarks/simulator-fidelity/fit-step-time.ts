// Fits the linear step time to measured serving points, and says how well it does on shapes that the fit has not seen.
import type { LinearStepTime } from '@penstock/domain-engine-model';

/** One measured point: requests of one length, so many of them always with the server. */
export interface ServingPoint {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Requests with the server at once: those that wait for their first token, and those that decode. */
  readonly concurrency: number;
  /** As many sequences as the cache holds at their mean length. */
  readonly sequencesMax: number;
  /** Mean time to the first token, in milliseconds: a condition of the point, as its concurrency is; nothing predicts it here. */
  readonly ttftMs: number;
  /** Mean time between tokens, in milliseconds. */
  readonly tpotMs: number;
}

/** How strongly the datasheets hold a coefficient: as much as one point that is off by this share would. */
const PRIOR_WEIGHT = 0.02;
const ROUNDS = 1_000;
const PASSES = 6;
/** Errors under this share weigh no more. */
const ERROR_FLOOR = 0.005;
/** The error whose weight is 1. */
const ERROR_UNIT = 0.04;
/** Rounds until step time and number of decoding sequences agree; each halves what is left of their difference. */
const BALANCE_ROUNDS = 60;

/**
 * Sequences that decode at once, by Little's law: of the time a request is with the server, it decodes
 * `outputTokens * tpotMs` and waits `ttftMs` for its first token. At 1024/512 and 128 requests the 8B model on four
 * accelerators spends 2 s of 7 s before the first token, so that only 92 of them decode.
 */
function decodingAt({ outputTokens, concurrency, sequencesMax, ttftMs }: ServingPoint, tpotMs: number): number {
  const decodeMs = outputTokens * tpotMs;
  return Math.min(sequencesMax, (concurrency * decodeMs) / (ttftMs + decodeMs));
}

/**
 * What a step of the steady state computes, as factors of the coefficients: in the `outputTokens` steps of one answer every place
 * starts one prompt, so a step carries `decoding / outputTokens` prompts on average.
 */
function factorsOf({ promptTokens, outputTokens }: ServingPoint, decoding: number): number[] {
  const prompts = decoding / outputTokens;
  return [1, decoding / 1e3, (prompts * promptTokens) / 1e3, (decoding * (promptTokens + outputTokens / 2)) / 1e6, (prompts * promptTokens ** 2) / 2e6];
}

function coefficientsOf(solution: readonly number[]): LinearStepTime {
  const [baseMs = 0, decodeUs = 0, prefillUs = 0, contextNs = 0, attentionNs = 0] = solution;
  return { baseMs, decodeUs, prefillUs, contextNs, attentionNs };
}

const listOf = ({ baseMs, decodeUs, prefillUs, contextNs, attentionNs }: LinearStepTime): number[] => [baseMs, decodeUs, prefillUs, contextNs, attentionNs];

/** The step time at which as many sequences decode as that step time leaves decoding; the measured one is not looked at. */
export function predictTpotMs(point: ServingPoint, coefficients: LinearStepTime): number {
  const solution = listOf(coefficients);
  let tpotMs = dot(factorsOf(point, Math.min(point.concurrency, point.sequencesMax)), solution);
  for (let round = 0; round < BALANCE_ROUNDS; round += 1) tpotMs = (tpotMs + dot(factorsOf(point, decodingAt(point, tpotMs)), solution)) / 2;
  return tpotMs;
}

/**
 * Smallest sum of relative errors with no coefficient below zero: least squares by coordinate descent, each row weighted anew by
 * its last error. Points of few shapes do not tell the coefficients apart; there `prior` decides.
 */
export function fitStepTime(points: readonly ServingPoint[], prior: LinearStepTime): LinearStepTime {
  const measured = points.map((point) => factorsOf(point, decodingAt(point, point.tpotMs)).map((factor) => factor / point.tpotMs));
  const expected = listOf(prior);
  let solution = [...expected];
  let weights = measured.map(() => 1);
  for (let pass = 0; pass < PASSES; pass += 1) {
    const rows = measured.map((row, index) => row.map((factor) => factor * (weights[index] ?? 1)));
    const held = expected.map((value, term) => expected.map((_, column) => (column === term ? PRIOR_WEIGHT / value : 0)));
    solution = descend([...rows, ...held], [...weights, ...held.map(() => PRIOR_WEIGHT)], solution);
    weights = measured.map((row) => 1 / Math.sqrt(Math.max(ERROR_FLOOR, Math.abs(1 - dot(row, solution))) / ERROR_UNIT));
  }
  return coefficientsOf(solution);
}

function dot(row: readonly number[], solution: readonly number[]): number {
  return row.reduce((sum, factor, term) => sum + factor * (solution[term] ?? 0), 0);
}

function descend(rows: readonly (readonly number[])[], wanted: readonly number[], start: readonly number[]): number[] {
  const solution = [...start];
  const rests = rows.map((row, index) => (wanted[index] ?? 0) - dot(row, solution));
  const squares = solution.map((_, term) => rows.reduce((sum, row) => sum + (row[term] ?? 0) ** 2, 0));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let term = 0; term < solution.length; term += 1) {
      const gradient = rows.reduce((sum, row, index) => sum + (row[term] ?? 0) * (rests[index] ?? 0), 0);
      const before = solution[term] ?? 0;
      const after = Math.max(0, before + gradient / (squares[term] ?? 1));
      solution[term] = after;
      rows.forEach((row, index) => (rests[index] = (rests[index] ?? 0) - (after - before) * (row[term] ?? 0)));
    }
  }
  return solution;
}

export interface HeldOutError {
  readonly points: number;
  readonly shapes: number;
  /** Mean absolute error in percent, over points of shapes that their fit left out. */
  readonly mapePct: number;
  readonly inSampleMapePct: number;
}

/** Leaves out one shape (prompt and output length) after the other, fits the rest, and predicts what was left out. */
export function heldOutError(points: readonly ServingPoint[], prior: LinearStepTime): HeldOutError {
  const shapeOf = (point: ServingPoint): string => `${point.promptTokens}/${point.outputTokens}`;
  const shapes = [...new Set(points.map(shapeOf))];
  const errorOf = (point: ServingPoint, fit: LinearStepTime): number => Math.abs(predictTpotMs(point, fit) / point.tpotMs - 1);
  const heldOut = shapes.flatMap((shape) => {
    const fit = fitStepTime(points.filter((point) => shapeOf(point) !== shape), prior);
    return points.filter((point) => shapeOf(point) === shape).map((point) => errorOf(point, fit));
  });
  const whole = fitStepTime(points, prior);
  const percent = (errors: readonly number[]): number => (100 * errors.reduce((sum, error) => sum + error, 0)) / Math.max(1, errors.length);
  return { points: points.length, shapes: shapes.length, mapePct: percent(heldOut), inSampleMapePct: percent(points.map((point) => errorOf(point, whole))) };
}

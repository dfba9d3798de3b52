/** Where a figure comes from, from worst to best. */
export type FigureSource = 'estimated' | 'published' | 'measured';

/** A number with its origin, so that a plan can say what it rests on. */
export interface Figure {
  readonly value: number;
  readonly from: FigureSource;
  /** The model, table or replica. */
  readonly source: string;
}

/** What one replica does when it works on so many requests at once. */
export interface ProfilePoint {
  readonly concurrency: number;
  readonly requestsPerS: number;
  /** Time to the first token and between tokens, in milliseconds. */
  readonly ttftMs: number;
  readonly itlMs: number;
  readonly from: FigureSource;
  readonly source: string;
}

/** Tokens of a typical request. */
export interface RequestShape {
  readonly promptTokens: number;
  /** 0 for embeddings and scores. */
  readonly completionTokens: number;
}

/** A latency objective, in milliseconds. */
export interface LatencyObjective {
  readonly ttftMs: number;
  readonly itlMs: number;
}

/** The device a replica runs on: whole GPUs of a type, or one MIG instance. */
export interface ProfileDevice {
  readonly gpuType: string;
  readonly slice: string | null;
  readonly tensorParallel: number;
}

/** What is known of a model version at one precision on one device. */
export interface ReplicaProfile {
  readonly modelVersionId: string;
  readonly precision: string;
  readonly device: ProfileDevice;
  readonly shape: RequestShape;
  /** On each accelerator. */
  readonly weightBytes: Figure;
  /** Tokens of key-value cache that fit beside the weights, on all accelerators together. */
  readonly kvTokens: Figure;
  /** By concurrency, ascending. */
  readonly curve: readonly ProfilePoint[];
  /** Seconds to ready, by where the artifacts come from. */
  readonly startSeconds: Readonly<Record<'object_store' | 'node_cache', Figure>>;
}

/** The last point of the curve that keeps the objective; beyond it requests only wait. undefined when none does. */
export function kneeOf(profile: ReplicaProfile, objective: LatencyObjective): ProfilePoint | undefined {
  return profile.curve.filter((point) => point.ttftMs <= objective.ttftMs && point.itlMs <= objective.itlMs).reduce<ProfilePoint | undefined>((best, point) => (best === undefined || point.requestsPerS > best.requestsPerS ? point : best), undefined);
}

/**
 * What a profile lacks before a plan may rest on it; empty when it is whole. Weights and cache say what fits: where all of the curve was
 * measured, it fitted, and they may be unknown (not a number).
 */
export function profileHoles(profile: ReplicaProfile): readonly string[] {
  const holes: string[] = [];
  const hasRun = profile.curve.length > 0 && profile.curve.every(({ from }) => from === 'measured');
  if (!(profile.weightBytes.value > 0) && !hasRun) holes.push('weightBytes');
  if (!(profile.kvTokens.value >= 0) && !hasRun) holes.push('kvTokens');
  if (profile.curve.length === 0) holes.push('curve');
  for (const [index, point] of profile.curve.entries()) {
    if (!(point.requestsPerS > 0) || !(point.ttftMs >= 0) || !(point.itlMs >= 0)) holes.push(`curve[${index}]`);
    if (index > 0 && point.concurrency <= (profile.curve[index - 1] as ProfilePoint).concurrency) holes.push(`curve[${index}].concurrency is not larger than the one before`);
  }
  return holes;
}

const RANK: Readonly<Record<FigureSource, number>> = { estimated: 0, published: 1, measured: 2 };

/** The weakest origin of what a plan under the objective rests on: weights, cache and the knee; of the whole curve where none of it keeps the objective. */
export function weakestSource(profile: ReplicaProfile, objective: LatencyObjective): FigureSource {
  const { weightBytes, kvTokens, curve } = profile;
  const knee = kneeOf(profile, objective);
  return [weightBytes, kvTokens, ...(knee === undefined ? curve : [knee])].filter((one) => !('value' in one) || !Number.isNaN(one.value)).reduce<FigureSource>((weakest, { from }) => (RANK[from] < RANK[weakest] ? from : weakest), 'measured');
}

/**
 * Puts better figures in the place of worse ones, each by itself: measured before published before estimated, and among
 * equals the new one. Points of the curve replace those of the same concurrency. Estimated points above the highest better
 * one are scaled by how far the estimate was off there, and stay estimates; between two estimates it is taken to go straight.
 */
export function improveProfile(known: ReplicaProfile, news: Partial<Pick<ReplicaProfile, 'weightBytes' | 'kvTokens' | 'curve' | 'startSeconds'>>): ReplicaProfile {
  const better = (one: Figure, other: Figure | undefined): Figure => (other !== undefined && RANK[other.from] >= RANK[one.from] ? other : one);
  return {
    ...known,
    weightBytes: better(known.weightBytes, news.weightBytes),
    kvTokens: better(known.kvTokens, news.kvTokens),
    curve: improveCurve(known.curve, news.curve ?? []),
    startSeconds: { object_store: better(known.startSeconds.object_store, news.startSeconds?.object_store), node_cache: better(known.startSeconds.node_cache, news.startSeconds?.node_cache) },
  };
}

function improveCurve(known: readonly ProfilePoint[], news: readonly ProfilePoint[]): readonly ProfilePoint[] {
  const points = new Map(known.map((point) => [point.concurrency, point]));
  for (const point of news) {
    const old = points.get(point.concurrency);
    if (old === undefined || RANK[point.from] >= RANK[old.from]) points.set(point.concurrency, point);
  }
  const sorted = [...points.values()].sort((one, other) => one.concurrency - other.concurrency);
  const anchor = news.filter((point) => point.from !== 'estimated').at(-1);
  const isHighest = anchor !== undefined && !known.some((point) => point.from !== 'estimated' && point.concurrency > anchor.concurrency);
  const estimate = isHighest ? estimateAt(known, anchor.concurrency) : undefined;
  if (anchor === undefined || estimate === undefined) return sorted;
  const slower = anchor.itlMs > 0 && estimate.itlMs > 0 ? anchor.itlMs / estimate.itlMs : 1;
  const rate = anchor.requestsPerS / estimate.requestsPerS;
  const later = anchor.ttftMs > 0 && estimate.ttftMs > 0 ? anchor.ttftMs / estimate.ttftMs : 1;
  return sorted.map((point) => (point.from !== 'estimated' || point.concurrency <= anchor.concurrency ? point : { ...point, requestsPerS: point.requestsPerS * rate, ttftMs: point.ttftMs * later, itlMs: point.itlMs * slower }));
}

/** What the estimates say of a concurrency; undefined where a better figure is known, and beyond the estimates. */
function estimateAt(known: readonly ProfilePoint[], concurrency: number): Pick<ProfilePoint, 'requestsPerS' | 'ttftMs' | 'itlMs'> | undefined {
  const below = known.findLast((point) => point.concurrency <= concurrency);
  const above = known.find((point) => point.concurrency >= concurrency);
  if (below?.from !== 'estimated' || above?.from !== 'estimated') return undefined;
  const share = below === above ? 0 : (concurrency - below.concurrency) / (above.concurrency - below.concurrency);
  const between = (field: 'requestsPerS' | 'ttftMs' | 'itlMs'): number => below[field] + share * (above[field] - below[field]);
  return { requestsPerS: between('requestsPerS'), ttftMs: between('ttftMs'), itlMs: between('itlMs') };
}

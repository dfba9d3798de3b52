import type { ReplicaProfileMeasuredV1 } from '@penstock/contract-events';

export type CurvePoint = ReplicaProfileMeasuredV1['curve'][number];

/** What an engine has counted since it started, and how many requests it has now. */
export interface EngineCounts {
  readonly atMs: number;
  /** Requests inside the engine, whether it works on them or lets them wait. */
  readonly atOnce: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Requests that got their first token, and the seconds that these took together. */
  readonly firstTokens: number;
  readonly firstTokenSeconds: number;
  /** Observations of the time between two tokens of a request, and their seconds together. */
  readonly tokenGaps: number;
  readonly tokenGapSeconds: number;
}

/** What happened between two looks at an engine that had equally many requests at both. */
interface Interval {
  readonly atOnce: number;
  readonly tokensPerS: number;
  readonly firstTokens: number;
  /** Mean tokens of the requests of its time. */
  readonly lengths: RequestLengths;
  /** Means over the interval, in milliseconds; null where nothing was observed. */
  readonly ttftMs: number | null;
  readonly itlMs: number | null;
}

interface RequestLengths {
  readonly prompt: number;
  readonly completion: number;
}

/** Upper ends of the classes of requests at once; the top one is open. Points of one class stand for each other. */
const CLASS_ENDS = [1, 2, 3, 5, 7, 11, 19, 27, 39, 55, 79, 111, 159, 223, 319, 447, 639, 895];

/** The newest intervals of a class that count: what an engine did long ago says little. */
const INTERVALS_MAX = 64;
/** A class with fewer intervals, or fewer requests in them, says nothing yet. */
const INTERVALS_MIN = 12;
const REQUESTS_MIN = 10;
/** Looks that are further apart than this do not show how many requests there were between them. */
const INTERVAL_MS_MAX = 10_000;

/** Looks over which the mean lengths of requests are taken, and the requests that have to begin within them. */
const LENGTH_LOOKS_MAX = 120;
const LENGTH_REQUESTS_MIN = 5;

/** A change of any figure by less than this is noise. */
const CHANGE_MIN = 0.1;
/** Times that differ by less than this, in milliseconds, are the same. */
const SAME_MS = 0.5;

/** The class of so many requests at once, from 0. */
export function classOf(concurrency: number): number {
  const found = CLASS_ENDS.findIndex((end) => concurrency <= end);
  return found === -1 ? CLASS_ENDS.length : found;
}

/**
 * Gathers throughput and latency of one engine by how many requests it has at once. Only intervals at whose both ends it has
 * as many (of one class) count, and of these the medians, so that single stalls do not. Requests begin where the number of them
 * changes, so their lengths are taken over all intervals. Bounded: some intervals for each class, and some looks.
 */
export class CurveMeter {
  /** The newest looks, oldest first. */
  private looks: EngineCounts[] = [];
  private readonly intervals = new Map<number, Interval[]>();

  observe(counts: EngineCounts): void {
    const last = this.looks.at(-1);
    // Counters that went back belong to an engine that was started again.
    if (last !== undefined && COUNTERS.some((field) => counts[field] < last[field])) this.looks = [];
    this.looks.push(counts);
    if (this.looks.length > LENGTH_LOOKS_MAX) this.looks.shift();
    const lengths = lengthsOf(this.looks[0] ?? counts, counts);
    const interval = last === undefined || lengths === undefined || this.looks.length < 2 ? undefined : intervalOf(last, counts, lengths);
    if (interval === undefined) return;
    const kept = this.intervals.get(classOf(interval.atOnce)) ?? [];
    kept.push(interval);
    if (kept.length > INTERVALS_MAX) kept.shift();
    this.intervals.set(classOf(interval.atOnce), kept);
  }

  /** Points of the classes that say enough, ascending. */
  points(): readonly CurvePoint[] {
    return [...this.intervals].sort(([one], [other]) => one - other).flatMap(([, kept]) => pointOf(kept) ?? []);
  }
}

const COUNTERS = ['promptTokens', 'completionTokens', 'firstTokens', 'firstTokenSeconds', 'tokenGaps', 'tokenGapSeconds'] as const;

function lengthsOf(before: EngineCounts, after: EngineCounts): RequestLengths | undefined {
  const requests = after.firstTokens - before.firstTokens;
  if (requests < LENGTH_REQUESTS_MIN) return undefined;
  return { prompt: (after.promptTokens - before.promptTokens) / requests, completion: Math.max(1, (after.completionTokens - before.completionTokens) / requests) };
}

function intervalOf(before: EngineCounts, after: EngineCounts, lengths: RequestLengths): Interval | undefined {
  const ms = after.atMs - before.atMs;
  if (ms <= 0 || ms > INTERVAL_MS_MAX || before.atOnce < 1 || after.atOnce < 1 || classOf(before.atOnce) !== classOf(after.atOnce)) return undefined;
  const grown = (field: keyof EngineCounts): number => after[field] - before[field];
  if (grown('completionTokens') <= 0) return undefined;
  const meanMs = (seconds: number, count: number): number | null => (count > 0 ? (seconds / count) * 1_000 : null);
  return {
    atOnce: after.atOnce, tokensPerS: (grown('completionTokens') / ms) * 1_000, firstTokens: grown('firstTokens'), lengths,
    ttftMs: meanMs(grown('firstTokenSeconds'), grown('firstTokens')), itlMs: meanMs(grown('tokenGapSeconds'), grown('tokenGaps')),
  };
}

function pointOf(kept: readonly Interval[]): CurvePoint | undefined {
  const requests = kept.reduce((total, { firstTokens }) => total + firstTokens, 0);
  if (kept.length < INTERVALS_MIN || requests < REQUESTS_MIN) return undefined;
  const ttftMs = median(kept.flatMap((interval) => interval.ttftMs ?? []));
  if (ttftMs === undefined) return undefined;
  const mean = (field: keyof RequestLengths): number => kept.reduce((total, { lengths }) => total + lengths[field], 0) / kept.length;
  const completionTokens = mean('completion');
  return {
    concurrency: median(kept.map(({ atOnce }) => atOnce)) as number, requestsPerS: (median(kept.map(({ tokensPerS }) => tokensPerS)) as number) / completionTokens, ttftMs,
    // Answers of one token have no time between tokens.
    itlMs: median(kept.flatMap((interval) => interval.itlMs ?? [])) ?? 0,
    promptTokens: Math.round(mean('prompt')), completionTokens: Math.round(completionTokens), samples: kept.length,
  };
}

/** The lower one of two middle values, so that whole numbers stay whole. undefined of nothing. */
function median(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) / 2)];
}

/** Whether a curve says something that the known one does not: a new class, or a figure that is noticeably another. */
export function saysNews(known: readonly CurvePoint[], points: readonly CurvePoint[]): boolean {
  return points.some((point) => {
    const old = known.find((one) => classOf(one.concurrency) === classOf(point.concurrency));
    if (old === undefined) return true;
    const isOther = (one: number, other: number): boolean => Math.abs(one - other) > CHANGE_MIN * Math.max(one, other);
    const isLater = (one: number, other: number): boolean => isOther(one, other) && Math.abs(one - other) > SAME_MS;
    return isOther(old.requestsPerS, point.requestsPerS) || isLater(old.ttftMs, point.ttftMs) || isLater(old.itlMs, point.itlMs);
  });
}

/** The newer points in the place of older ones of their class, ascending. */
export function mergeCurves<Known extends CurvePoint, News extends CurvePoint>(known: readonly Known[], news: readonly News[]): readonly (Known | News)[] {
  const taken = new Set(news.map(({ concurrency }) => classOf(concurrency)));
  return [...known.filter(({ concurrency }) => !taken.has(classOf(concurrency))), ...news].sort((one, other) => one.concurrency - other.concurrency);
}

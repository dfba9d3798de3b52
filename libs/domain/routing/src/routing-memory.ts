import { CachedPrefixes } from './cached-prefixes.js';
import { textTokensIn, type PromptTrail } from './prompt-trail.js';

/** Sessions of one endpoint whose replica is remembered. */
export const SESSIONS_MAX = 10_000;
/** Replicas of one endpoint that are remembered: more than an endpoint may have at once. */
export const REPLICAS_REMEMBERED_MAX = 1_024;

/** How fast and how large the replicas of an endpoint are, as far as somebody said. */
export interface ReplicaPace {
  /** Milliseconds that a replica computes on one token of a prompt. */
  readonly prefillMsPerToken: number;
  /** Tokens that the prefix cache of a replica keeps. */
  readonly cacheTokens: number;
}

/** An H100 with a model of 70 billion parameters takes 49 to 84 microseconds, one with 8 billion 20; slower ones only weigh cached tokens more. */
export const PACE_ASSUMED: ReplicaPace = { prefillMsPerToken: 0.06, cacheTokens: 400_000 };

/** The pace of replicas of which only some figures are known, or none. A cache whose size is not known is taken for one of the usual size. */
export function replicaPaceOf(known: { readonly cacheTokens: number | null; readonly prefillTokensPerSecond: number | null }): ReplicaPace {
  const { cacheTokens, prefillTokensPerSecond } = known;
  return {
    prefillMsPerToken: prefillTokensPerSecond === null ? PACE_ASSUMED.prefillMsPerToken : 1_000 / prefillTokensPerSecond,
    cacheTokens: cacheTokens ?? PACE_ASSUMED.cacheTokens,
  };
}

/** Hears which prompt went to a replica and how many of its tokens there are to compute. */
export type LearnedListener = (replicaId: string, computeTokens: number, blocks: readonly number[]) => void;

/** An engine that had less than this share of what it was believed to have is told from one whose tokens are of another length. */
const MISS_SHARE = 0.5;
/** A replica that so many times in a row had not what it was believed to have does not keep what it computes. */
const MISSES_UNTIL_DISTRUST = 2;

/** What an engine's answer says of its prompt, in its own tokens. */
export interface PromptReport {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

interface ReplicaTrace {
  readonly prefixes: CachedPrefixes;
  /** When the prompts that it was sent are computed, in milliseconds since the epoch. */
  computedAtMs: number;
  /** Answers in a row that had less cached than was believed. */
  misses: number;
}

/** What was believed of the replica when a prompt was sent to it. */
interface Expectation {
  readonly replicaId: string;
  /** The share of the prompt that it had cached. */
  readonly share: number;
  /** When the last block of that share was used. */
  readonly mark: number;
}

/**
 * What the requests to one endpoint taught about its replicas: which prompts they have cached, how much they have to compute
 * before a new one, and where sessions went last. An estimate from what was sent alone; whoever sends learns what it sent itself.
 */
export class RoutingMemory {
  private readonly replicas = new Map<string, ReplicaTrace>();
  private readonly sessions = new Map<number, string>();
  /** By the prompt that was sent, for as long as somebody has that prompt. */
  private readonly expectations = new WeakMap<PromptTrail, Expectation>();
  private pace: ReplicaPace;
  private readonly tokensIn: (count: number) => number;

  /** `tokensIn` says how many tokens the first so many blocks of a prompt have; `onLearned` hears of every prompt that was sent. */
  constructor(pace: ReplicaPace = PACE_ASSUMED, tokensIn: (count: number) => number = textTokensIn, private readonly onLearned?: LearnedListener) {
    this.pace = pace;
    this.tokensIn = tokensIn;
  }

  /** Blocks over all replicas. */
  get blocks(): number {
    let blocks = 0;
    for (const { prefixes } of this.replicas.values()) blocks += prefixes.size;
    return blocks;
  }

  get prefillMsPerToken(): number {
    return this.pace.prefillMsPerToken;
  }

  setPace(pace: ReplicaPace): void {
    if (pace.cacheTokens === this.pace.cacheTokens && pace.prefillMsPerToken === this.pace.prefillMsPerToken) return;
    this.pace = pace;
    for (const { prefixes } of this.replicas.values()) prefixes.limit(pace.cacheTokens);
  }

  /** Tokens of the prompt that the replica need not compute. */
  hitTokens(replicaId: string, prompt: PromptTrail): number {
    const trace = this.replicas.get(replicaId);
    return trace === undefined || prompt.blocks.length === 0 ? 0 : Math.min(prompt.tokens, trace.prefixes.hitTokens(prompt.blocks));
  }

  /** How long the replica computes on prompts that it was sent before. */
  backlogMs(replicaId: string, nowMs: number): number {
    return Math.max(0, (this.replicas.get(replicaId)?.computedAtMs ?? 0) - nowMs);
  }

  /** Where the session went last; undefined when that is not known. */
  replicaOfSession(session: number | null): string | undefined {
    return session === null ? undefined : this.sessions.get(session);
  }

  /** The prompt goes to the replica. */
  learn(replicaId: string, prompt: PromptTrail, nowMs: number): void {
    const trace = this.traceOf(replicaId);
    const hitTokens = this.hitTokens(replicaId, prompt);
    this.expect(replicaId, prompt, trace, hitTokens, nowMs);
    const computeTokens = prompt.tokens - hitTokens;
    trace.computedAtMs = Math.max(nowMs, trace.computedAtMs) + computeTokens * this.pace.prefillMsPerToken;
    trace.prefixes.touch(prompt.blocks);
    this.onLearned?.(replicaId, computeTokens, prompt.blocks);
    if (prompt.session === null) return;
    this.sessions.delete(prompt.session);
    this.sessions.set(prompt.session, replicaId);
    if (this.sessions.size > SESSIONS_MAX) for (const oldest of this.sessions.keys()) return void this.sessions.delete(oldest);
  }

  /**
   * The replica answered the prompt that was sent to it last, and said what it had cached. Had it less than was believed, then what was not
   * used since is gone too, for engines forget the oldest first; the prompt itself it has computed anew. If that happens again at once, it does not keep
   * what it computes, and the prompt is no reason to go there. Had it something, then that is believed from now on.
   */
  correct(replicaId: string, prompt: PromptTrail, { promptTokens, cachedTokens }: PromptReport): void {
    const expected = this.expectations.get(prompt);
    this.expectations.delete(prompt);
    const trace = this.replicas.get(replicaId);
    if (trace === undefined || prompt.blocks.length === 0 || promptTokens <= 0) return;
    const share = cachedTokens / promptTokens;
    if (expected?.replicaId === replicaId && share < expected.share * MISS_SHARE) {
      trace.misses += 1;
      trace.prefixes.forgetUpTo(expected.mark);
      if (trace.misses >= MISSES_UNTIL_DISTRUST) trace.prefixes.forget(prompt.blocks);
      return;
    }
    if (cachedTokens === 0) return;
    trace.misses = 0;
    if (this.hitTokens(replicaId, prompt) < share * MISS_SHARE * prompt.tokens) trace.prefixes.touch(prompt.blocks);
  }

  /** What is still to be computed cannot be cached yet, so an answer says nothing against it. */
  private expect(replicaId: string, prompt: PromptTrail, trace: ReplicaTrace, hitTokens: number, nowMs: number): void {
    const mark = hitTokens === 0 || trace.computedAtMs > nowMs ? undefined : trace.prefixes.hitMark(prompt.blocks);
    if (mark === undefined) this.expectations.delete(prompt);
    else this.expectations.set(prompt, { replicaId, share: hitTokens / prompt.tokens, mark });
  }

  /** Somebody else sent these prompts to the replica. */
  hear(replicaId: string, computeTokens: number, prompts: readonly (readonly number[])[], nowMs: number): void {
    const trace = this.traceOf(replicaId);
    trace.computedAtMs = Math.max(nowMs, trace.computedAtMs) + computeTokens * this.pace.prefillMsPerToken;
    for (const blocks of prompts) trace.prefixes.touch(blocks);
  }

  /** The replica's cache holds no more than so many tokens now. */
  trim(replicaId: string, tokens: number): void {
    this.replicas.get(replicaId)?.prefixes.trim(tokens);
  }

  /** Forgets replicas that serve no more. */
  keepOnly(isServing: (replicaId: string) => boolean): void {
    for (const replicaId of this.replicas.keys()) if (!isServing(replicaId)) this.replicas.delete(replicaId);
  }

  /** The replica is gone, or it lost its cache. */
  forget(replicaId: string): void {
    this.replicas.delete(replicaId);
  }

  clear(): void {
    this.replicas.clear();
    this.sessions.clear();
  }

  private traceOf(replicaId: string): ReplicaTrace {
    const known = this.replicas.get(replicaId);
    if (known !== undefined) return known;
    const trace: ReplicaTrace = { prefixes: new CachedPrefixes(this.pace.cacheTokens, this.tokensIn), computedAtMs: 0, misses: 0 };
    this.replicas.set(replicaId, trace);
    // Replicas that are gone and that nobody forgot are the oldest.
    if (this.replicas.size > REPLICAS_REMEMBERED_MAX) for (const oldest of this.replicas.keys()) {
      this.replicas.delete(oldest);
      break;
    }
    return trace;
  }
}

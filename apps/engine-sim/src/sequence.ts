import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { SimOptions } from './options.js';
import type { SimRequest } from './sim-request.js';
import type { Slots } from './slots.js';
import type { TimedEngine } from './timed-engine.js';
import { TokenSource } from './token-source.js';

/** What one step of one sequence produced: often one token, several when the machine was late. */
export interface Piece {
  readonly choice: number;
  readonly text: string;
  readonly tokens: readonly string[];
  /** Tokens of this choice so far. */
  readonly producedTokens: number;
  readonly finish: 'stop' | 'length' | null;
  readonly stopReason: string | null;
  /** Prompt tokens that were found in the cache; undefined where no cache is simulated. */
  readonly cachedTokens?: number;
}

/** Without a pace, other work gets its turn after this many tokens. */
const TOKENS_PER_TURN = 16;

/** Runs one choice in one slot. Ends early, without a finish, when `signal` fires. */
export async function* runSequence(request: SimRequest, choice: number, options: SimOptions, slots: Slots, signal: AbortSignal): AsyncGenerator<Piece> {
  if (!(await slots.take(signal))) return;
  try {
    if (options['prefill-ms'] > 0) await delay(options['prefill-ms'], undefined, { signal }).catch(() => undefined);
    const source = new TokenSource(request.promptText, request.seed, choice, request.ignoreEnd);
    const holder = new StopHolder(request.stop);
    const startedMs = performance.now();
    let produced = 0;
    while (!signal.aborted) {
      const due = await tokensDue(produced, startedMs, options['tokens-per-second'], signal);
      const piece = take(source, holder, choice, produced, Math.min(due, request.tokensMax - produced), request.tokensMax);
      produced = piece.producedTokens;
      yield piece;
      if (piece.finish !== null) return;
    }
  } finally {
    slots.release();
  }
}

/** Runs one choice at the pace of the engine model. Ends early, without a finish, when `signal` fires or the engine dies. */
export async function* runTimedSequence(request: SimRequest, choice: number, engine: TimedEngine, signal: AbortSignal): AsyncGenerator<Piece> {
  const source = new TokenSource(request.promptText, request.seed, choice, request.ignoreEnd);
  const holder = new StopHolder(request.stop);
  let produced = 0;
  for await (const arrival of engine.run(request, signal)) {
    const piece = take(source, holder, choice, produced, Math.min(arrival.tokens, request.tokensMax - produced), request.tokensMax);
    produced = piece.producedTokens;
    yield { ...piece, cachedTokens: arrival.cachedTokens };
    if (piece.finish !== null) return;
  }
}

function take(source: TokenSource, holder: StopHolder, choice: number, before: number, count: number, tokensMax: number): Piece {
  const tokens: string[] = [];
  let text = '';
  for (let step = 0; step < count; step += 1) {
    const token = source.next();
    if (token.kind === 'end') {
      // The end token is a token: vLLM counts it, and its text is empty.
      tokens.push('');
      return { choice, text: text + holder.flush(), tokens, producedTokens: before + tokens.length, finish: 'stop', stopReason: null };
    }
    tokens.push(token.text);
    const { emit, hit } = holder.push(token.text);
    text += emit;
    if (hit !== null) return { choice, text, tokens, producedTokens: before + tokens.length, finish: 'stop', stopReason: hit };
  }
  const producedTokens = before + tokens.length;
  const isLast = producedTokens >= tokensMax;
  return { choice, text: isLast ? text + holder.flush() : text, tokens, producedTokens, finish: isLast ? 'length' : null, stopReason: null };
}

async function tokensDue(produced: number, startedMs: number, tokensPerSecond: number, signal: AbortSignal): Promise<number> {
  if (tokensPerSecond === 0) {
    if (produced % TOKENS_PER_TURN === 0) await nextTurn();
    return 1;
  }
  const nextAtMs = startedMs + ((produced + 1) * 1_000) / tokensPerSecond;
  const waitMs = nextAtMs - performance.now();
  if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => undefined);
  return Math.max(1, Math.floor(((performance.now() - startedMs) * tokensPerSecond) / 1_000) - produced);
}

/** Holds back text that may become a stop string, and cuts the answer before one. */
class StopHolder {
  private held = '';
  private readonly longest: number;

  constructor(private readonly stops: readonly string[]) {
    this.longest = Math.max(0, ...stops.map((stop) => stop.length));
  }

  push(text: string): { emit: string; hit: string | null } {
    this.held += text;
    const found = this.stops.map((stop) => ({ stop, at: this.held.indexOf(stop) })).filter(({ stop, at }) => stop !== '' && at >= 0).sort((a, b) => a.at - b.at)[0];
    if (found !== undefined) return { emit: this.held.slice(0, found.at), hit: found.stop };
    const keep = Math.max(0, this.longest - 1);
    const emit = this.held.slice(0, Math.max(0, this.held.length - keep));
    this.held = this.held.slice(emit.length);
    return { emit, hit: null };
  }

  flush(): string {
    const rest = this.held;
    this.held = '';
    return rest;
  }
}

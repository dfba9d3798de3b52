import { countAt, isRecord, recordAt } from './json-fields.js';

/** What one chunk or answer of an engine says about usage: cumulative figures. */
export interface UsageReading {
  /**
   * Which completions the figure covers: the whole `request`, the one `choice` that the chunk belongs to, or
   * `finished-choice`: the choice that reported its finish reason last (llama.cpp sends its usage chunk once for each choice).
   */
  readonly scope: 'request' | 'choice' | 'finished-choice';
  /** Index of the choice when `scope` is `choice`. */
  readonly choice: number;
  readonly promptTokens: number;
  /** Null where the reading does not say. */
  readonly cachedTokens: number | null;
  readonly completionTokens: number;
  readonly reasoningTokens: number | null;
}

/** Usage of one request so far. A value: every step returns a new one. */
export interface RunningUsage {
  /** Counted once, however many choices there are. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** True once a reading said how many tokens were cached, be it none. */
  readonly cachedKnown: boolean;
  /** Over all choices. */
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly byChoice: Readonly<Record<number, number>>;
  readonly lastFinishedChoice: number;
  /** True once any reading came. */
  readonly known: boolean;
}

export const noUsage: RunningUsage = {
  promptTokens: 0, cachedTokens: 0, cachedKnown: false, completionTokens: 0, reasoningTokens: 0, byChoice: {}, lastFinishedChoice: 0, known: false,
};

/** Takes one reading in. Figures never shrink: an engine that reports one choice of several does not erase the others. */
export function addUsage(usage: RunningUsage, reading: UsageReading): RunningUsage {
  const common = {
    ...usage,
    known: true,
    promptTokens: Math.max(usage.promptTokens, reading.promptTokens),
    cachedTokens: Math.min(Math.max(usage.cachedTokens, reading.cachedTokens ?? 0), Math.max(usage.promptTokens, reading.promptTokens)),
    cachedKnown: usage.cachedKnown || reading.cachedTokens !== null,
    reasoningTokens: Math.max(usage.reasoningTokens, reading.reasoningTokens ?? 0),
  };
  if (reading.scope === 'request') return { ...common, completionTokens: Math.max(usage.completionTokens, reading.completionTokens) };
  const choice = reading.scope === 'choice' ? reading.choice : usage.lastFinishedChoice;
  const byChoice = { ...usage.byChoice, [choice]: Math.max(usage.byChoice[choice] ?? 0, reading.completionTokens) };
  const sum = Object.values(byChoice).reduce((total, tokens) => total + tokens, 0);
  return { ...common, byChoice, completionTokens: Math.max(usage.completionTokens, sum) };
}

/** Notes that a choice reported its finish reason, which tells whose usage chunk comes next. Call it before `addUsage` of the next chunk. */
export function noteFinish(usage: RunningUsage, choice: number): RunningUsage {
  return { ...usage, lastFinishedChoice: choice };
}

/** Usage of two parts of one request that were worked on apart. */
export function sumUsage(left: RunningUsage, right: RunningUsage): RunningUsage {
  return {
    promptTokens: left.promptTokens + right.promptTokens,
    cachedTokens: left.cachedTokens + right.cachedTokens,
    cachedKnown: left.cachedKnown && right.cachedKnown,
    completionTokens: left.completionTokens + right.completionTokens,
    reasoningTokens: left.reasoningTokens + right.reasoningTokens,
    byChoice: {},
    lastFinishedChoice: 0,
    known: left.known && right.known,
  };
}

/** What an operation used that reads a prompt and writes nothing. */
export function promptUsage(promptTokens: number | undefined): RunningUsage {
  return { ...noUsage, promptTokens: promptTokens ?? 0, known: promptTokens !== undefined };
}

/** Reads `usage` as OpenAI shapes it; undefined when there is none or a figure is not a whole number from 0 up. */
export function readOpenAiUsage(body: unknown): { promptTokens: number; completionTokens: number; cachedTokens: number | null; reasoningTokens: number | null } | undefined {
  const usage = recordAt(body, 'usage');
  const promptTokens = countAt(usage, 'prompt_tokens');
  const completionTokens = countAt(usage, 'completion_tokens');
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  return {
    promptTokens,
    completionTokens,
    cachedTokens: countAt(recordAt(usage, 'prompt_tokens_details'), 'cached_tokens') ?? null,
    reasoningTokens: countAt(recordAt(usage, 'completion_tokens_details'), 'reasoning_tokens') ?? null,
  };
}

/** Index of the only choice of a chunk; undefined when it has none or several. */
export function onlyChoiceOf(body: unknown): number | undefined {
  const choices = isRecord(body) ? body['choices'] : undefined;
  if (!Array.isArray(choices) || choices.length !== 1) return undefined;
  return countAt(choices[0] as unknown, 'index') ?? 0;
}

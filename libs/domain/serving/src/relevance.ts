import type { ApiFault, RerankRequest, ScoreRequest } from '@penstock/contract-http';
import type { EngineFault } from './engine-dialect.js';
import { brokenAnswerFault } from './engine-fault.js';
import { countAt, isRecord, recordAt } from './json-fields.js';

/** Texts in pairs: `left[i]` belongs to `right[i]`. */
export interface ScorePairs {
  readonly left: readonly string[];
  readonly right: readonly string[];
}

/** The two sides of a score request, whichever names they came by; one text on the left goes with each on the right. */
export function scorePairsOf(request: ScoreRequest): { readonly kind: 'pairs'; readonly pairs: ScorePairs } | { readonly kind: 'fault'; readonly fault: ApiFault } {
  const sides = ([['text_1', 'text_2'], ['queries', 'documents'], ['data_1', 'data_2']] as const).find(([left]) => (request[left] ?? undefined) !== undefined);
  if (sides === undefined) return { kind: 'fault', fault: { code: 'missing_required_parameter', message: `Missing required parameter: 'text_1'.`, param: 'text_1' } };
  const [left, right] = [listOf(request[sides[0]]), listOf(request[sides[1]])];
  if (right.length === 0) return { kind: 'fault', fault: { code: 'missing_required_parameter', message: `Missing required parameter: '${sides[1]}'.`, param: sides[1] } };
  if (left.length !== 1 && left.length !== right.length) {
    return { kind: 'fault', fault: { code: 'invalid_value', message: `'${sides[0]}' has ${left.length} texts and '${sides[1]}' has ${right.length}: send one on the left, or as many as on the right.`, param: sides[0] } };
  }
  return { kind: 'pairs', pairs: { left: left.length === 1 ? right.map(() => left[0] ?? '') : left, right } };
}

function listOf(value: string | readonly string[] | null | undefined): readonly string[] {
  return typeof value === 'string' ? [value] : value ?? [];
}

export function documentTextsOf({ documents }: RerankRequest): readonly string[] {
  return documents.map((document) => (typeof document === 'string' ? document : document.text));
}

export interface RankedDocument {
  readonly index: number;
  readonly document?: { readonly text: string };
  readonly relevance_score: number;
}

/** Best first, and of equal ones the earlier first; as many as were asked for. */
export function rankDocuments(request: RerankRequest, scores: readonly number[]): readonly RankedDocument[] {
  const texts = documentTextsOf(request);
  const asked = request.top_n ?? 0;
  const ranked = scores.map((score, index): RankedDocument => ({
    index, ...(request.return_documents === false ? {} : { document: { text: texts[index] ?? '' } }), relevance_score: score,
  })).sort((left, right) => right.relevance_score - left.relevance_score || left.index - right.index);
  return asked === 0 ? ranked : ranked.slice(0, asked);
}

export type ScoreReading = { readonly kind: 'scores'; readonly scores: readonly number[]; readonly promptTokens: number | undefined } | { readonly kind: 'fault'; readonly fault: EngineFault };

/** The scores of an engine's answer in the order of the texts: `results[].relevance_score` of a ranking, or `data[].score`. */
export function readScores(body: unknown, count: number): ScoreReading {
  const list = isRecord(body) ? body['results'] ?? body['data'] : undefined;
  const scores: number[] = [];
  for (const [position, item] of (Array.isArray(list) ? list as unknown[] : []).entries()) {
    const score = isRecord(item) ? item['relevance_score'] ?? item['score'] : undefined;
    if (typeof score !== 'number') return { kind: 'fault', fault: brokenAnswerFault };
    scores[countAt(item, 'index') ?? position] = score;
  }
  if (scores.length !== count || Array.from(scores).some((score) => score === undefined)) return { kind: 'fault', fault: brokenAnswerFault };
  return { kind: 'scores', scores, promptTokens: countAt(recordAt(body, 'usage'), 'prompt_tokens') };
}

export interface TextClass {
  readonly index: number;
  readonly label: string | null;
  readonly probs: readonly number[];
  readonly num_classes: number;
}

/** The classes of an engine's answer; undefined when it is not one. */
export function readClasses(body: unknown, count: number): readonly TextClass[] | undefined {
  const list = isRecord(body) && Array.isArray(body['data']) ? body['data'] as unknown[] : [];
  const classes = list.flatMap((item, position): TextClass[] => {
    const probs = isRecord(item) && Array.isArray(item['probs']) ? item['probs'].filter((value) => typeof value === 'number') : [];
    if (!isRecord(item) || probs.length === 0) return [];
    return [{ index: countAt(item, 'index') ?? position, label: typeof item['label'] === 'string' ? item['label'] : null, probs, num_classes: probs.length }];
  });
  return classes.length === count ? classes : undefined;
}

import { moderationCategories, type ModerationAnswer, type ModerationCategory } from '@penstock/contract-http';
import type { TextClass } from './relevance.js';

/**
 * Classes of models that judge texts, by the names that their configurations give: OpenAI's own categories; the short ones of
 * KoalaAI/Text-Moderation (its model card says what each stands for); those of the Jigsaw toxic-comment data that many models are trained on.
 */
const CATEGORY_OF_LABEL: ReadonlyMap<string, ModerationCategory> = new Map<string, ModerationCategory>([
  ...moderationCategories.map((category) => [category, category] as const),
  ['s', 'sexual'], ['h', 'hate'], ['v', 'violence'], ['hr', 'harassment'], ['sh', 'self-harm'], ['s3', 'sexual/minors'], ['h2', 'hate/threatening'], ['v2', 'violence/graphic'],
  ['toxic', 'harassment'], ['toxicity', 'harassment'], ['severe-toxic', 'harassment'], ['insult', 'harassment'], ['threat', 'harassment/threatening'], ['obscene', 'sexual'], ['identity-hate', 'hate'],
]);
/** Labels that say that there is nothing to object to. */
const HARMLESS: ReadonlySet<string> = new Set(['ok', 'safe', 'neutral', 'none', 'normal', 'non-toxic', 'not-toxic']);

export type ModerationResult = ModerationAnswer['results'][number];

/**
 * One judgement in OpenAI's form. An engine names the most likely class of each text and no other, so every other category has a score
 * of 0. Undefined for a class that is none of the known ones: the model is not one that moderates.
 */
export function toModeration({ label, probs }: TextClass): ModerationResult | undefined {
  const name = (label ?? '').trim().toLowerCase().replaceAll('_', '-');
  const category = CATEGORY_OF_LABEL.get(name);
  if (category === undefined && !HARMLESS.has(name)) return undefined;
  const each = <Value>(value: (of: ModerationCategory) => Value): Record<ModerationCategory, Value> => Object.fromEntries(moderationCategories.map((of) => [of, value(of)])) as Record<ModerationCategory, Value>;
  return {
    flagged: category !== undefined,
    categories: each((of) => of === category),
    category_scores: each((of) => (of === category ? Math.max(...probs) : 0)),
    category_applied_input_types: each(() => ['text']),
  };
}

import { z } from 'zod';

/** OpenAI's categories, in its order. */
export const moderationCategories = [
  'harassment', 'harassment/threatening', 'sexual', 'hate', 'hate/threatening', 'illicit', 'illicit/violent', 'self-harm/intent', 'self-harm/instructions', 'self-harm', 'sexual/minors', 'violence', 'violence/graphic',
] as const;
export type ModerationCategory = (typeof moderationCategories)[number];

/** The model that is asked when a request names none. */
export const MODERATION_MODEL_DEFAULT = 'omni-moderation-latest';
/** Texts of one request. */
const INPUTS_MAX = 1_000;

const part = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('image_url') }),
]);

/** Body of `POST /v1/moderations`: one text, several texts, or the parts of one. */
export const moderationRequest = z.looseObject({
  model: z.string().min(1).max(200).nullable().optional(),
  input: z.union([z.string().min(1), z.array(z.string()).min(1).max(INPUTS_MAX), z.array(part).min(1).max(INPUTS_MAX)]),
});
export type ModerationRequest = z.infer<typeof moderationRequest>;

const perCategory = <Value extends z.ZodType>(value: Value) => z.record(z.enum(moderationCategories), value);

export const moderationAnswer = z.object({
  id: z.string(),
  model: z.string(),
  results: z.array(z.object({
    flagged: z.boolean(),
    categories: perCategory(z.boolean()),
    category_scores: perCategory(z.number()),
    category_applied_input_types: perCategory(z.array(z.enum(['text', 'image']))),
  })),
});
export type ModerationAnswer = z.infer<typeof moderationAnswer>;

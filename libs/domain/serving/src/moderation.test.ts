import { expect, test } from '@jest/globals';
import { moderationAnswer, moderationCategories } from '@penstock/contract-http';
import { toModeration } from './moderation.js';

const shape = moderationAnswer.shape.results.element;
const judge = (label: string | null) => toModeration({ index: 0, label, probs: [0.1, 0.9], num_classes: 2 });

test.each([...moderationCategories.map((category) => [category, category] as const), ['S3', 'sexual/minors'], ['severe_toxic', 'harassment'], ['Identity_Hate', 'hate']] as const)('the class %s is the category %s', (label, category) => {
  const result = shape.parse(judge(label));
  expect(result.flagged).toBe(true);
  expect(moderationCategories.filter((of) => result.categories[of])).toEqual([category]);
  expect([result.category_scores[category], result.category_applied_input_types[category]]).toEqual([0.9, ['text']]);
});

test('a harmless text is none of them, and a model that does something else does not moderate', () => {
  for (const label of ['OK', 'safe', 'non-toxic']) expect(shape.parse(judge(label))).toMatchObject({ flagged: false });
  for (const label of ['spam', 'LABEL_0', '', null]) expect(judge(label)).toBeUndefined();
});

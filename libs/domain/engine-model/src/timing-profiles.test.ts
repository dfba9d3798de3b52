import { describe, expect, test } from '@jest/globals';
import { datasheetStepTime } from './datasheet-step-time.js';
import { kvTokensThatFit } from './memory-law.js';
import { acceleratorShapes, modelShapes, timingProfile, timingProfileNames } from './timing-profiles.js';

describe('timing profiles', () => {
  test('every profile has a cache, a source, and a step time', () => {
    for (const name of timingProfileNames) expect(timingProfile(name)).toMatchObject({ name, kvTokens: expect.any(Number), source: expect.stringMatching(/.+/) });
  });

  test('known parts that nobody measured together give the datasheets\' step time', () => {
    const profile = timingProfile('8xh100-qwen3-32b-fp8');
    expect(profile.status).toBe('datasheet');
    expect(profile.step.baseMs).toBeLessThan(timingProfile('2xh100-qwen3-32b').step.baseMs);
  });

  test('an unknown name lists what there is, and a model that does not fit says so', () => {
    expect(() => timingProfile('h100-gpt-9')).toThrow(/no timing profile h100-gpt-9\. Known: .*h100-llama-3\.1-8b/);
    expect(() => timingProfile('l4-llama-3.1-70b')).toThrow(/does not fit/);
  });
});

test('the memory law gives the cache that a real vLLM reported: 486,800 tokens for 70B on four H100', () => {
  const [model, accelerator] = [modelShapes['llama-3.1-70b'], acceleratorShapes['h100']];
  if (model === undefined || accelerator === undefined) throw new Error('the shapes are missing');
  const tokens = kvTokensThatFit(model, accelerator, { tensorParallel: 4, weightBytes: 2, kvBytes: 2 });
  expect(Math.abs(tokens / 486_800 - 1)).toBeLessThan(0.01);
});

test('the datasheets\' step time is near the measured one, and more accelerators make it shorter', () => {
  const [model, accelerator] = [modelShapes['llama-3.1-8b'], acceleratorShapes['h100']];
  if (model === undefined || accelerator === undefined) throw new Error('the shapes are missing');
  const steps = [1, 2, 4].map((tensorParallel) => datasheetStepTime(model, accelerator, { tensorParallel, weightBytes: 2, kvBytes: 2 }).baseMs);
  expect(steps).toEqual(steps.toSorted((left, right) => right - left));
  const measured = timingProfile('h100-llama-3.1-8b').step.baseMs;
  expect(Math.abs((steps[0] ?? 0) / measured - 1)).toBeLessThan(0.25);
});

import { expect, test } from '@jest/globals';
import { onCurve, onGrid } from './interpolate.js';
import { noHostCosts, profiledStepTime, type LayerProfile } from './profiled-step-time.js';

const line = { at: [1, 101], value: [10, 110] };
const plane = { axes: [[1, 11], [0, 100]], values: [1, 101, 11, 111] };
const profile: LayerProfile = { layers: 10, layerUs: line, onceUs: { at: [0], value: [100] }, perSequenceUs: { at: [0], value: [200] }, decodeUs: plane, prefillUs: { axes: [[1], [0]], values: [50] }, mixedDecodeUs: { axes: [[1], [0]], values: [70] }, host: noHostCosts };

test('curves and grids are straight between their points and past them', () => {
  expect([0, 1, 51, 101, 201].map((x) => onCurve(line, x))).toEqual([9, 10, 60, 110, 210]);
  expect([[1, 0], [6, 50], [11, 100], [21, 200]].map((point) => onGrid(plane, point))).toEqual([1, 56, 111, 221]);
});

test('a step is its layers, what is there once, and the host', () => {
  expect(profiledStepTime(profile)({ prefills: [], decodeContexts: [100] })).toBeCloseTo((10 * (10 + 101) + 300) / 1e3, 9);
  const host = { decodeStepMs: { at: [0], value: [5] }, mixedStepMs: 7, allReduceUs: { at: [0], value: [3] } };
  expect(profiledStepTime({ ...profile, host })({ prefills: [], decodeContexts: [100] })).toBeCloseTo((10 * (10 + 101 + 6) + 300) / 1e3 + 5, 9);
  expect(profiledStepTime({ ...profile, host })({ prefills: [{ tokens: 50, cachedTokens: 0 }], decodeContexts: [100] })).toBeCloseTo((10 * (60 + 70 + 50 + 6) + 300) / 1e3 + 7, 9);
});

import { expect, test } from '@jest/globals';
import type { FleetPart } from '../fleet/fleet-types.js';
import { gpusOf } from './capacity-options.js';

const part: FleetPart = { accelerators: 1, nodes: 1, computeMilli: 250, vramMib: 1_000, migProfile: null, cpuMilli: 0, hostMemoryMib: 0 };
const optionOf = (...parts: readonly FleetPart[]): Parameters<typeof gpusOf>[0] => ({ gpuType: 'H100-80GB-SXM', sharing: 'shares', precision: 'bf16', parts });

test('shares count in part, groups and instances whole, whatever compute they set aside', () => {
  expect(gpusOf(optionOf(part, part))).toBe(0.5);
  expect(gpusOf(optionOf({ ...part, accelerators: 4, computeMilli: 0 }, { ...part, accelerators: 4, computeMilli: 0 }))).toBe(8);
  expect(gpusOf({ ...optionOf({ ...part, migProfile: '3g.40gb' }), sharing: 'mig' })).toBe(1);
});

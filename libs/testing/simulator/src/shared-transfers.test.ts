import { SharedTransfers } from '@penstock/infra-simulated-fleet';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { VirtualTime } from './virtual-time.js';

const HOUR_MS = 3_600_000;
const NODE_BPS = 100;

describe('transfers that share bandwidth', () => {
  test('property: every byte arrives, no link carries more than it can, and none is left idle while somebody waits for it', async () => {
    const pull = fc.record({ node: fc.nat(4), bytes: fc.integer({ min: 1, max: 10_000 }), atMs: fc.nat(60_000) });
    await fc.assert(fc.asyncProperty(fc.array(pull, { minLength: 1, maxLength: 15 }), fc.integer({ min: 50, max: 600 }), async (pulls, registryBps) => {
      const time = new VirtualTime(0);
      const transfers = new SharedTransfers(time, time, registryBps, 1);
      const endedMs: number[] = pulls.map(() => 0);
      for (const [index, { node, bytes, atMs }] of pulls.entries()) time.after(atMs, () => transfers.start(`n${node}`, bytes, NODE_BPS, () => (endedMs[index] = time.now())));
      const nodes = [...new Set(pulls.map(({ node }) => `n${node}`))];
      time.every(5_000, () => {
        const rates = nodes.map((node) => transfers.rateOf(node));
        const total = rates.reduce((sum, rate) => sum + rate, 0);
        expect(total).toBeLessThanOrEqual(registryBps + 1e-6);
        for (const rate of rates) expect(rate).toBeLessThanOrEqual(NODE_BPS + 1e-6);
        const isShort = rates.some((rate) => rate > 0 && rate < NODE_BPS - 1e-6);
        if (isShort) expect(total).toBeCloseTo(registryBps, 6);
      });
      await time.run(HOUR_MS, () => endedMs.filter((ms) => ms > 0).length === pulls.length);
      for (const [index, { bytes, atMs }] of pulls.entries()) expect(endedMs[index]).toBeGreaterThanOrEqual(atMs + (bytes / Math.min(NODE_BPS, registryBps)) * 1_000 - 1);
    }), { numRuns: 25 });
  });

  test('one that is broken off leaves its part to the others', async () => {
    const time = new VirtualTime(0);
    const transfers = new SharedTransfers(time, time, 100, 1);
    let endedMs = 0;
    const broken = transfers.start('n1', 1_000, 100, () => expect('never').toBe('reached'));
    transfers.start('n2', 1_000, 100, () => (endedMs = time.now()));
    time.after(5_000, () => {
      expect(broken.leftBytes()).toBe(750);
      broken.cancel();
    });
    await time.run(HOUR_MS);
    // 50 a second for 5 s, then 100 a second.
    expect(endedMs).toBe(12_500);
  });
});

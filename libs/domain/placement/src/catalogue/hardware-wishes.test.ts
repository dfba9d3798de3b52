import { describe, expect, test } from '@jest/globals';
import { wishProblem } from './hardware-wishes.js';

describe('a wish for hardware', () => {
  test('may name what is known, or what the fleet has', () => {
    for (const type of [null, 'cpu', 'h100', 'l4', 'H100-80GB-SXM', 'h100-mig-1g.10gb']) expect(wishProblem(type, null, [])).toBeUndefined();
    expect(wishProblem('geforce-rtx-4090', null, ['geforce-rtx-4090'])).toBeUndefined();
    expect(wishProblem('a100', '3g.40gb', [])).toBeUndefined();
    expect(wishProblem(null, '3g.40gb', [])).toBeUndefined();
  });

  test('is refused with what there is', () => {
    expect(wishProblem('h1000', null, ['l4'])).toMatchObject({ field: 'acceleratorType', message: expect.stringMatching(/^h1000 is no accelerator of this fleet \(l4\) and none that is known \(cpu, h100, a100, h200/) });
    expect(wishProblem('h100-mig-9g.99gb', null, [])).toMatchObject({ field: 'acceleratorType' });
    expect(wishProblem('l4', '1g.10gb', [])).toEqual({ field: 'migProfile', message: 'l4 cannot be split by MIG' });
    expect(wishProblem('a30', '3g.40gb', [])).toMatchObject({ message: 'a30 has no MIG profile 3g.40gb; there are 1g.6gb, 1g.6gb+me, 2g.12gb, 4g.24gb' });
  });
});

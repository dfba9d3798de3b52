import type { Clock } from '@penstock/kernel';

export const systemClock: Clock = { now: () => Date.now() };

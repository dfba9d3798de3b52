import type { PlacementInput } from './placement-input.js';

/** For how long a better packing, or an instance that was made room for, is expected to be of use. */
export const MOVE_HORIZON_HOURS = 4;

/** What a move costs beside the room that it takes twice: requests that meet a cold cache, and the risk of a start. */
const DISRUPTION_DOLLARS = 0.02;

const MS_PER_HOUR = 3_600_000;

/** Dollars of starting a replica elsewhere and draining it where it is: it holds its part of the accelerators twice, for a start and about as long a drain. */
export function moveDollars(dollarsPerHour: number, { typicalStartMs }: Pick<PlacementInput, 'typicalStartMs'>): number {
  return DISRUPTION_DOLLARS + (dollarsPerHour * 2 * typicalStartMs) / MS_PER_HOUR;
}

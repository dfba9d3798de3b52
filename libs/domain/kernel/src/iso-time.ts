const SECOND_MS = 1_000;

let knownSecond = Number.NaN;
/** Of that second, up to the point before its milliseconds. */
let knownText = '';

/** ISO 8601 in UTC with milliseconds, as `Date` writes it. Times come in order, so most of them share the second of the one before. */
export function isoTime(epochMs: number): string {
  const ms = Math.trunc(epochMs);
  const second = Math.floor(ms / SECOND_MS);
  if (second !== knownSecond) {
    knownText = new Date(second * SECOND_MS).toISOString().slice(0, -'000Z'.length);
    knownSecond = second;
  }
  return `${knownText}${String(ms - second * SECOND_MS).padStart(3, '0')}Z`;
}

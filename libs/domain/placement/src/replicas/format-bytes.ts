const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** `24.6 GB`, in powers of 1000, for reasons that people read. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

const BYTE_STEP = 1_000;
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `98.1 MB`: decimal units, as disks and networks count. */
export function formatBytes(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(BYTE_STEP)));
  return `${(bytes / BYTE_STEP ** step).toFixed(step === 0 ? 0 : 1)} ${BYTE_UNITS[step]}`;
}

/** `4 m 12 s` since an instant, in the two largest units. */
export function formatAge(instant: string, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(instant)) / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} m`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

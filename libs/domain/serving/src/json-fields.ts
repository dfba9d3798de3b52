/** Careful reading of JSON whose shape somebody else decides. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function recordAt(value: unknown, key: string): Readonly<Record<string, unknown>> | undefined {
  const found = isRecord(value) ? value[key] : undefined;
  return isRecord(found) ? found : undefined;
}

export function countAt(value: unknown, key: string): number | undefined {
  const found = isRecord(value) ? value[key] : undefined;
  return typeof found === 'number' && Number.isSafeInteger(found) && found >= 0 ? found : undefined;
}

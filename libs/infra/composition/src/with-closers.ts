import type { RunningService } from '@penstock/feature-shell';

/** The same service, whose close also closes what was opened for it, in the order given. */
export function withClosers(service: RunningService, closers: readonly (() => Promise<void>)[]): RunningService {
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    await service.close();
    for (const close of closers) await close();
  };
  return { ...service, close: () => (closing ??= closeAll()) };
}

/** Closes what was opened when the start that needed it fails, then throws its error on. */
export async function closingOnFailure<Value>(closers: readonly (() => Promise<void>)[], start: () => Promise<Value>): Promise<Value> {
  try {
    return await start();
  } catch (error) {
    for (const close of closers) await close().catch(() => undefined);
    throw error;
  }
}

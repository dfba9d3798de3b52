export type ReportBytes = (completedBytes: number, totalBytes: number | null) => void;

interface Running<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  readonly listeners: Set<ReportBytes>;
}

/** Callers that want the same thing at once share one piece of work. It ends early only when the last of them gives up. */
export class SharedWork<Result> {
  private readonly running = new Map<string, Running<Result>>();

  async run(key: string, onProgress: ReportBytes, signal: AbortSignal | undefined, work: (signal: AbortSignal, report: ReportBytes) => Promise<Result>): Promise<Result> {
    const current = this.running.get(key);
    // Work that its last caller gave up is ending: it cannot be joined any more.
    const shared = current === undefined || current.controller.signal.aborted ? this.begin(key, work) : current;
    shared.listeners.add(onProgress);
    try {
      return await untilAborted(shared.result, signal);
    } finally {
      shared.listeners.delete(onProgress);
      if (shared.listeners.size === 0) shared.controller.abort();
    }
  }

  private begin(key: string, work: (signal: AbortSignal, report: ReportBytes) => Promise<Result>): Running<Result> {
    const controller = new AbortController();
    const listeners = new Set<ReportBytes>();
    const report: ReportBytes = (completed, total) => {
      for (const listener of listeners) listener(completed, total);
    };
    const shared = { result: work(controller.signal, report), controller, listeners };
    this.running.set(key, shared);
    const forget = (): void => {
      if (this.running.get(key) === shared) this.running.delete(key);
    };
    // Everybody may have left by the time it fails.
    shared.result.then(forget, forget);
    return shared;
  }
}

async function untilAborted<Result>(result: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return result;
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([result, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

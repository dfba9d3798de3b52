import type { Logger, Timers } from '@penstock/kernel';

/** Real timers. A failing call is logged and does not stop the next one. */
export function createSystemTimers(logger: Logger): Timers {
  return {
    after(delayMs, call) {
      const timer = setTimeout(call, delayMs);
      return () => clearTimeout(timer);
    },
    every(intervalMs, call) {
      let stopped = false;
      let timer: NodeJS.Timeout;
      const tick = async (): Promise<void> => {
        try {
          await call();
        } catch (error) {
          logger.error({ err: error }, 'a periodic task failed');
        }
        if (!stopped) timer = setTimeout(() => void tick(), intervalMs);
      };
      timer = setTimeout(() => void tick(), intervalMs);
      return () => {
        stopped = true;
        clearTimeout(timer);
      };
    },
  };
}

import { wakeEndpoint } from '@penstock/contract-commands';
import { describeError } from '@penstock/contract-http';
import { noCapacity } from '@penstock/domain-routing';
import type { CommandClient, Logger, Timers } from '@penstock/kernel';
import type { EndpointDesk } from './endpoint-desk.js';
import type { RouterMetrics } from './router-metrics.js';

/** First wait after a wake that did not get through; doubles up to the longest. */
export const WAKE_RETRY_MS_MIN = 250;
export const WAKE_RETRY_MS_MAX = 5_000;
/** A wake that got through is said again after this long while requests still wait: a wake may be lost behind it. */
export const WAKE_REPEAT_MS = 10_000;

export interface ColdStartsPorts {
  readonly commands: CommandClient;
  readonly logger: Logger;
  readonly timers: Timers;
}

/** Asks the autoscaler for a replica where requests wait without one: one conversation per endpoint, for as long as somebody waits. */
export class ColdStarts {
  private readonly awake = new Map<string, () => void>();
  private isClosed = false;

  constructor(private readonly ports: ColdStartsPorts, private readonly metrics: RouterMetrics) {}

  /** Does nothing while a conversation about the endpoint goes on. */
  wake(desk: EndpointDesk, waiting: number): void {
    if (this.isClosed || this.awake.has(desk.endpointId)) return;
    void this.converse(desk, waiting, 0);
  }

  /** The endpoint has a replica, or nobody waits: the next wake begins anew. */
  settle(endpointId: string): void {
    this.awake.get(endpointId)?.();
    this.awake.delete(endpointId);
  }

  close(): void {
    this.isClosed = true;
    for (const cancel of this.awake.values()) cancel();
    this.awake.clear();
  }

  private async converse(desk: EndpointDesk, waiting: number, failures: number): Promise<void> {
    const turn = (): void => undefined;
    this.awake.set(desk.endpointId, turn);
    const outcome = await this.attempt(desk, waiting);
    // Settled meanwhile: another conversation may have begun.
    if (this.isClosed || this.awake.get(desk.endpointId) !== turn) return;
    const failuresNow = outcome === 'done' ? 0 : failures + 1;
    const delayMs = outcome === 'done' ? WAKE_REPEAT_MS : Math.min(WAKE_RETRY_MS_MAX, WAKE_RETRY_MS_MIN * 2 ** failures);
    if (!desk.needsWake()) {
      this.awake.delete(desk.endpointId);
      return;
    }
    const cancel = this.ports.timers.after(delayMs, () => {
      if (desk.needsWake()) void this.converse(desk, desk.state.waiting.size, failuresNow);
      else this.awake.delete(desk.endpointId);
    });
    this.awake.set(desk.endpointId, cancel);
  }

  private async attempt(desk: EndpointDesk, waiting: number): Promise<'done' | 'failed'> {
    const { endpointId } = desk;
    try {
      const reply = await this.ports.commands.send(wakeEndpoint, { endpointId, waiting });
      this.metrics.woke(reply.kind === 'ok' ? 'done' : 'refused');
      if (reply.kind === 'ok') return 'done';
      this.ports.logger.warn({ endpointId, code: reply.refusal.code }, 'the autoscaler refused to wake an endpoint');
      if (!describeError(reply.refusal.code).retryable) desk.refuseAll(noCapacity(reply.refusal.message));
    } catch (error) {
      this.metrics.woke('unavailable');
      this.ports.logger.warn({ err: error, endpointId }, 'an endpoint could not be woken; it is tried again while requests wait');
    }
    return 'failed';
  }
}

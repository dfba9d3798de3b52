import { promptNews } from '@penstock/contract-commands';
import type { Clock, Signals, Subscription, Timers } from '@penstock/kernel';
import type { PromptNews } from './prompt-news.js';
import type { RoutingMemory } from './routing-memory.js';

/** How often a process tells what it decided: well below the time between two requests of one conversation. */
export const NEWS_INTERVAL_MS = 100;

export interface PromptExchangePorts {
  readonly signals: Signals;
  readonly timers: Timers;
  readonly clock: Clock;
}

/**
 * Lets every process that chooses replicas learn from the choices of all: each tells its own, in one live message at a time. What
 * gets lost costs a prefix that is computed twice, and nothing else. Keys are salted by tenant, so a message tells nothing of a prompt.
 */
export class PromptExchange {
  private subscription: Subscription | undefined;
  private readonly stopTimer: () => void;

  constructor(private readonly ownId: string, private readonly news: PromptNews, private readonly memoryOf: (endpointId: string) => RoutingMemory | undefined, private readonly ports: PromptExchangePorts) {
    this.stopTimer = ports.timers.every(NEWS_INTERVAL_MS, () => this.tell());
  }

  async start(): Promise<void> {
    this.subscription = await this.ports.signals.subscribe('tele.prompts.*', (data) => this.hear(data));
  }

  /** Tells what was decided since the last time; nothing when nothing was. */
  tell(): void {
    const message = this.news.take(this.ownId);
    if (message !== undefined) this.ports.signals.publish(`tele.prompts.${this.ownId}`, message);
  }

  async close(): Promise<void> {
    this.stopTimer();
    await this.subscription?.close();
  }

  private hear(data: unknown): void {
    const parsed = promptNews.safeParse(data);
    if (!parsed.success || parsed.data.tellerId === this.ownId) return;
    const nowMs = this.ports.clock.now();
    for (const { endpointId, replicas } of parsed.data.endpoints) {
      const memory = this.memoryOf(endpointId);
      if (memory !== undefined) for (const { replicaId, tokens, prompts } of replicas) memory.hear(replicaId, tokens, prompts, nowMs);
    }
  }
}

import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { contentKeys, createEngineModel, engineDefaults, linearStepTime, timingProfile, type EngineMetrics, type EngineModel, type EngineRequest, type StepResult } from '@penstock/domain-engine-model';
import { KvEventStream } from './kv-event-stream.js';
import type { SimOptions } from './options.js';
import { engineBusyBody, SimError } from './sim-error.js';
import type { SimRequest } from './sim-request.js';
import { tokenize } from './tokenizer.js';

/** Tokens of one sequence that have come since it was asked last. */
export interface Arrival {
  readonly tokens: number;
  readonly cachedTokens: number;
}

/** The engine model in real time: it runs step after step, waits as long as each takes, and hands out the tokens. */
export class TimedEngine {
  /** What enters and leaves the cache. */
  readonly kvEvents = new KvEventStream(() => ({ blocks: this.model.metrics().kvBlocksCached, blockTokens: engineDefaults.blockTokens }));
  private readonly model: EngineModel;
  private readonly feeds = new Map<string, Feed>();
  private readonly scale: number;
  private readonly startedMs = performance.now();
  private sequences = 0;
  private isRunning = false;
  private isDead = false;

  /** `onDeath` is told once when the model runs out of memory. */
  constructor(options: SimOptions, profileName: string, private readonly onDeath: () => void) {
    const profile = timingProfile(profileName);
    this.scale = options['time-scale'];
    this.model = createEngineModel({
      ...engineDefaults,
      kvBlocks: options['num-gpu-blocks-override'] ?? Math.floor(profile.kvTokens / engineDefaults.blockTokens),
      sequencesMax: options['max-num-seqs'], batchTokensMax: options['max-num-batched-tokens'], modelTokensMax: options['max-model-len'],
      adapterSlots: options['lora-modules'].length === 0 ? 0 : options['max-loras'], adapterLoadMs: options['lora-load-ms'],
      whenCacheIsFull: options['when-cache-is-full'], jitter: options['timing-jitter'], seed: options['timing-seed'],
      stepTime: linearStepTime(profile.step),
      onCacheChange: (change, key) => this.kvEvents.note(change, key),
    });
  }

  get dead(): boolean {
    return this.isDead;
  }

  metrics(): EngineMetrics {
    return this.model.metrics();
  }

  /** Yields whenever tokens of this choice have come. Ends early when `signal` fires or the engine dies; leaving the loop ends the sequence. */
  async *run(request: SimRequest, signal: AbortSignal): AsyncGenerator<Arrival> {
    const id = String((this.sequences += 1));
    const feed = new Feed();
    const stop = (): void => feed.end();
    this.feeds.set(id, feed);
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (signal.aborted) return;
      if (this.model.submit(engineRequestOf(id, request), this.nowMs()).kind !== 'queued') throw new SimError(503, engineBusyBody);
      this.start();
      for (let arrival = await feed.next(); arrival !== undefined; arrival = await feed.next()) yield arrival;
    } finally {
      signal.removeEventListener('abort', stop);
      this.feeds.delete(id);
      this.model.cancel(id);
    }
  }

  /** Milliseconds of the model's time. */
  private nowMs(): number {
    return (performance.now() - this.startedMs) / this.scale;
  }

  private start(): void {
    if (this.isRunning) return;
    this.isRunning = true;
    void this.loop();
  }

  /** A step begins when the one before ends by the model's time, so that a late timer does not slow the engine down. */
  private async loop(): Promise<void> {
    for (let beginsMs = this.nowMs(); ;) {
      const step = this.model.step(beginsMs);
      if (step === undefined || 'outOfMemory' in step) {
        this.isRunning = false;
        return step === undefined ? undefined : this.die();
      }
      beginsMs += step.durationMs;
      const waitMs = (beginsMs - this.nowMs()) * this.scale;
      if (waitMs > 0) await delay(waitMs, undefined, { ref: false });
      this.deliver(step);
      // Those whose answer is complete leave in this turn, before the next step is planned.
      await nextTurn();
    }
  }

  private deliver(step: StepResult): void {
    for (const token of step.tokens) this.feeds.get(token.id)?.push(token.cachedTokens);
  }

  private die(): void {
    this.isDead = true;
    for (const feed of this.feeds.values()) feed.end();
    this.onDeath();
  }
}

function engineRequestOf(id: string, request: SimRequest): EngineRequest {
  const tokens = tokenize(request.promptText);
  return {
    id, promptTokens: Math.max(1, tokens.length), outputTokens: request.tokensMax,
    contentKeys: contentKeys(tokens, engineDefaults.blockTokens), scope: { salt: request.cacheSalt, adapter: request.adapter },
  };
}

/** Counts tokens until the reader takes them. */
class Feed {
  private tokens = 0;
  private cachedTokens = 0;
  private ended = false;
  private wake: (() => void) | undefined;

  push(cachedTokens: number): void {
    this.tokens += 1;
    this.cachedTokens = cachedTokens;
    this.wake?.();
  }

  end(): void {
    this.ended = true;
    this.wake?.();
  }

  /** Undefined once it has ended. */
  async next(): Promise<Arrival | undefined> {
    while (this.tokens === 0 && !this.ended) await new Promise<void>((resolve) => (this.wake = resolve));
    if (this.ended) return undefined;
    const arrival = { tokens: this.tokens, cachedTokens: this.cachedTokens };
    this.tokens = 0;
    return arrival;
  }
}

import type { Logger } from '@penstock/kernel';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { KubeError, type KubeClient } from './kube-client.js';

const LIST_PAGE = 500;
/** The server ends a watch after this long, and the next one goes on from there. */
const WATCH_SECONDS = 300;
const RETRY_FIRST_MS = 200;
const RETRY_MAX_MS = 10_000;
/** A kind that the cluster does not have is looked for again this often. */
const ABSENT_RETRY_MS = 300_000;

const meta = z.looseObject({ name: z.string(), resourceVersion: z.string() });
const listBody = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string(), continue: z.string().optional() }), items: z.array(z.unknown()) });
const anyObject = z.looseObject({ metadata: meta });

export interface WatchCounters {
  lists: number;
  /** Watches that the server ended because their version was too old. */
  expired: number;
  /** Connections that broke and were made again. */
  reconnects: number;
}

export interface ResourceWatchOptions<Item> {
  readonly client: KubeClient;
  /** The collection, such as `/api/v1/nodes`. */
  readonly path: string;
  readonly labelSelector?: string | undefined;
  readonly schema: z.ZodType<Item>;
  readonly logger: Logger;
  readonly counters: WatchCounters;
  /** Not every cluster has it or lets us see it: then the collection counts as empty. */
  readonly isOptional?: boolean | undefined;
  readonly onChange: () => void;
  /** Told of an object that the watch saw go, with its last state; objects that went unseen are only missing. */
  readonly onDeleted?: ((item: Item) => void) | undefined;
}

/**
 * A local copy of one collection: list, then watch from the list's version, with bookmarks so that the version stays young.
 * A broken connection goes on from the newest version seen; `410 Expired` lists again. Objects that cannot be read are left out.
 */
export class ResourceWatch<Item> {
  private items = new Map<string, { readonly version: string; readonly item: Item }>();
  private version: string | undefined;
  private readonly stop = new AbortController();
  private readonly running: Promise<void>;
  private isListed = false;
  /** A server that just started may refuse for a moment what it served before. */
  private wasServed = false;
  /** In a row: since the server last answered with something. */
  private failures = 0;

  constructor(private readonly options: ResourceWatchOptions<Item>) {
    this.running = this.run();
  }

  /** True once the collection was listed, or is known not to exist in this cluster. */
  get isSynced(): boolean {
    return this.isListed;
  }

  all(): readonly Item[] {
    return [...this.items.values()].map(({ item }) => item);
  }

  get(name: string): Item | undefined {
    return this.items.get(name)?.item;
  }

  /** Takes in what the server answered to a write of our own, before the watch shows it. */
  accept(written: unknown): void {
    this.put(written);
    this.options.onChange();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { logger, path, counters } = this.options;
    const { signal } = this.stop;
    while (!signal.aborted) {
      try {
        this.version ??= await this.list();
        await this.follow(this.version);
        await this.wait(RETRY_FIRST_MS);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof KubeError && error.isExpired) {
          counters.expired += 1;
          this.version = undefined;
          logger.info({ path }, 'the version of a watch is too old; listing again');
          await this.wait(RETRY_FIRST_MS);
          continue;
        }
        this.failures += 1;
        counters.reconnects += 1;
        const isAbsent = this.options.isOptional === true && !this.wasServed && error instanceof KubeError && (error.status === 404 || error.status === 403);
        if (isAbsent) this.becomeEmpty();
        // A refusal may mean that what we know is wrong; a broken connection does not.
        if (error instanceof KubeError) this.version = undefined;
        if (this.failures === 1) logger.warn({ err: error, path }, isAbsent ? 'this cluster does not show such resources' : 'a watch broke; it is made again');
        await this.wait(isAbsent ? ABSENT_RETRY_MS : Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(this.failures - 1, 10)));
      }
    }
  }

  /** Between any two watches, so that a server that ends each at once is not run down. */
  private async wait(delayMs: number): Promise<void> {
    await pause(delayMs, undefined, { signal: this.stop.signal }).catch(() => undefined);
  }

  private becomeEmpty(): void {
    this.items = new Map();
    this.isListed = true;
    this.options.onChange();
  }

  private async list(): Promise<string> {
    const { client, path, counters, onChange } = this.options;
    counters.lists += 1;
    const fresh: unknown[] = [];
    let version = '';
    let next: string | undefined;
    do {
      const page = listBody.parse(await client.call('GET', `${path}?${this.query({ limit: String(LIST_PAGE), ...(next === undefined ? {} : { continue: next }) })}`));
      fresh.push(...page.items);
      version = page.metadata.resourceVersion;
      next = page.metadata.continue === '' ? undefined : page.metadata.continue;
    } while (next !== undefined);
    this.items = new Map();
    for (const object of fresh) this.put(object);
    this.isListed = true;
    this.wasServed = true;
    this.failures = 0;
    onChange();
    return version;
  }

  private async follow(from: string): Promise<void> {
    const { client, path, onChange } = this.options;
    const query = this.query({ watch: '1', allowWatchBookmarks: 'true', resourceVersion: from, timeoutSeconds: String(WATCH_SECONDS) });
    for await (const { type, object } of client.watch(`${path}?${query}`, this.stop.signal)) {
      const { metadata } = anyObject.parse(type === 'BOOKMARK' ? withName(object) : object);
      if (type === 'DELETED') this.drop(metadata.name, object);
      else if (type !== 'BOOKMARK') this.put(object);
      this.version = metadata.resourceVersion;
      this.failures = 0;
      if (type !== 'BOOKMARK') onChange();
    }
  }

  private drop(name: string, object: unknown): void {
    this.items.delete(name);
    const parsed = this.options.schema.safeParse(object);
    if (parsed.success) this.options.onDeleted?.(parsed.data);
  }

  private put(object: unknown): void {
    const { metadata } = anyObject.parse(object);
    const known = this.items.get(metadata.name);
    if (known !== undefined && isOlder(metadata.resourceVersion, known.version)) return;
    const parsed = this.options.schema.safeParse(object);
    if (parsed.success) this.items.set(metadata.name, { version: metadata.resourceVersion, item: parsed.data });
    else this.options.logger.warn({ path: this.options.path, name: metadata.name, reason: parsed.error.issues[0]?.message }, 'an object has a shape that is not known; it is left out');
  }

  private query(parameters: Readonly<Record<string, string>>): string {
    const { labelSelector } = this.options;
    return new URLSearchParams({ ...parameters, ...(labelSelector === undefined ? {} : { labelSelector }) }).toString();
  }
}

/** A bookmark has a version and nothing else. */
function withName(object: unknown): unknown {
  const bookmark = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) }).parse(object);
  return { ...bookmark, metadata: { name: '', ...bookmark.metadata } };
}

/** Versions of one collection are whole decimal numbers that grow. */
function isOlder(one: string, other: string): boolean {
  return /^\d+$/.test(one) && /^\d+$/.test(other) && BigInt(one) < BigInt(other);
}

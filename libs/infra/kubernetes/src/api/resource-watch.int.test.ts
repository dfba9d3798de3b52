import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { silentLogger } from '@penstock/kernel';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { KubeClient } from './kube-client.js';
import { ResourceWatch } from './resource-watch.js';

const thing = z.object({ metadata: z.object({ name: z.string() }), size: z.int() });
type Thing = z.output<typeof thing>;

/** One collection of an API server, of which the test decides what each list and watch answers. */
class FakeApiServer {
  readonly items = new Map<string, { version: number; size: number }>();
  version = 10;
  oldest = 1;
  lists = 0;
  watches: { readonly from: number; readonly answer: ServerResponse }[] = [];
  private readonly server: Server = createServer((call, answer) => this.handle(call, answer));

  async start(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  object(name: string, size: number, version = this.version): object {
    return { metadata: { name, resourceVersion: String(version) }, size };
  }

  set(name: string, size: number): void {
    this.version += 1;
    const type = this.items.has(name) ? 'MODIFIED' : 'ADDED';
    this.items.set(name, { version: this.version, size });
    this.tell(type, this.object(name, size));
  }

  drop(name: string): void {
    this.version += 1;
    const { size } = this.items.get(name) ?? { size: 0 };
    this.items.delete(name);
    this.tell('DELETED', this.object(name, size));
  }

  tell(type: string, object: object): void {
    for (const { answer } of this.watches) answer.write(`${JSON.stringify({ type, object })}\n`);
  }

  /** Breaks every watch without a word. */
  breakAll(): void {
    for (const { answer } of this.watches.splice(0)) answer.socket?.destroy();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private handle(call: IncomingMessage, answer: ServerResponse): void {
    const query = new URL(call.url ?? '', 'http://localhost').searchParams;
    if (query.get('watch') === null) {
      this.lists += 1;
      const items = [...this.items].map(([name, { version, size }]) => this.object(name, size, version));
      answer.end(JSON.stringify({ metadata: { resourceVersion: String(this.version) }, items }));
      return;
    }
    const from = Number(query.get('resourceVersion'));
    if (from < this.oldest) {
      answer.writeHead(410).end(JSON.stringify({ kind: 'Status', reason: 'Expired', message: 'too old resource version', code: 410 }));
      return;
    }
    answer.writeHead(200);
    answer.flushHeaders();
    this.watches.push({ from, answer });
    for (const [name, { version, size }] of this.items) if (version > from) answer.write(`${JSON.stringify({ type: 'MODIFIED', object: this.object(name, size, version) })}\n`);
  }
}

const server = { current: new FakeApiServer() };
let client: KubeClient;
let watch: ResourceWatch<Thing>;
let listeners: (() => void)[] = [];
const counters = { lists: 0, expired: 0, reconnects: 0 };
const deleted: string[] = [];

/** Resolves once it holds, asked again after each change and each new watch. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await Promise.race([new Promise<void>((resolve) => listeners.push(resolve)), new Promise((resolve) => setTimeout(resolve, 20))]);
  }
}

const sizes = (): Record<string, number> => Object.fromEntries(watch.all().map((item) => [item.metadata.name, item.size]));

beforeEach(async () => {
  server.current = new FakeApiServer();
  Object.assign(counters, { lists: 0, expired: 0, reconnects: 0 });
  deleted.length = 0;
  server.current.items.set('a', { version: 5, size: 1 });
  const url = await server.current.start();
  client = new KubeClient({ server: url, ca: undefined, certificate: undefined, token: () => Promise.resolve('secret') });
  watch = new ResourceWatch({
    client, path: '/things', schema: thing, logger: silentLogger, counters,
    onChange: () => listeners.splice(0).forEach((listener) => listener()),
    onDeleted: (item) => deleted.push(item.metadata.name),
  });
  await until(() => server.current.watches.length === 1);
});

afterEach(async () => {
  await watch.close();
  await client.close();
  await server.current.close();
  listeners = [];
});

describe('a watch of a collection', () => {
  test('lists, then follows additions, changes and deletions', async () => {
    expect(watch.isSynced).toBe(true);
    server.current.set('b', 2);
    server.current.set('a', 3);
    await until(() => sizes()['a'] === 3);
    expect(sizes()).toEqual({ a: 3, b: 2 });
    server.current.drop('a');
    await until(() => sizes()['a'] === undefined);
    expect(deleted).toEqual(['a']);
    expect(server.current.lists).toBe(1);
  });

  test('goes on from the newest version, bookmarks included, after a broken connection', async () => {
    server.current.tell('BOOKMARK', { metadata: { resourceVersion: '42' } });
    server.current.set('b', 2);
    await until(() => sizes()['b'] === 2);
    server.current.tell('BOOKMARK', { metadata: { resourceVersion: '57' } });
    server.current.set('c', 3);
    server.current.items.get('c')!.version = 58;
    server.current.tell('MODIFIED', server.current.object('c', 3, 58));
    await until(() => sizes()['c'] === 3);
    server.current.breakAll();
    await until(() => server.current.watches.length === 1);
    expect(server.current.watches[0]?.from).toBeGreaterThanOrEqual(11);
    expect(server.current.lists).toBe(1);
    expect(counters.reconnects).toBe(1);
  });

  test('lists again after 410, and drops what went away unseen', async () => {
    server.current.oldest = 1_000;
    server.current.version = 1_001;
    server.current.items.delete('a');
    server.current.items.set('z', { version: 1_001, size: 9 });
    server.current.breakAll();
    await until(() => sizes()['z'] === 9);
    expect(sizes()).toEqual({ z: 9 });
    expect(counters.expired).toBe(1);
  });

  test('lists again when a running watch is told that its version is gone', async () => {
    server.current.tell('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    await until(() => server.current.lists === 2);
    expect(counters.expired).toBe(1);
  });

  test('takes in its own writes at once, but never something older than it knows', async () => {
    watch.accept(server.current.object('own', 7, 11));
    expect(sizes()['own']).toBe(7);
    watch.accept(server.current.object('a', 99, 4));
    expect(sizes()['a']).toBe(1);
  });

  test('an object of an unknown shape is left out and harms nothing', async () => {
    server.current.tell('ADDED', { metadata: { name: 'odd', resourceVersion: '12' }, size: 'large' });
    server.current.set('b', 2);
    await until(() => sizes()['b'] === 2);
    expect(sizes()).toEqual({ a: 1, b: 2 });
  });
});
